package group

import (
	"slices"
	"strings"
)

// Find returns the group at a path ("tenant/vm/web"), or nil. The caller may change the group in
// place.
func (d *Direction) Find(path string) *Group {
	groups, found := d.Groups, (*Group)(nil)
	for name := range strings.SplitSeq(path, "/") {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name })
		if i < 0 {
			return nil
		}
		found = &groups[i]
		groups = found.Groups
	}
	return found
}

// childrenOf returns the child groups of the group at a path, or the top-level groups for "". It
// returns nil if there is no such group.
func (d *Direction) childrenOf(path string) *[]Group {
	if path == "" {
		return &d.Groups
	}
	if g := d.Find(path); g != nil {
		return &g.Groups
	}
	return nil
}

// Add adds a group to the group at a path, or to the direction for "". It returns false if the
// parent does not exist, or already has a group of that name.
func (d *Direction) Add(parent string, g Group) bool {
	in := d.childrenOf(parent)
	if in == nil || slices.ContainsFunc(*in, func(have Group) bool { return have.Name == g.Name }) {
		return false
	}
	*in = append(*in, g)
	return true
}

// Remove removes the group at a path and the groups below it, and reports whether it existed.
func (d *Direction) Remove(path string) bool {
	parent, name := Split(path)
	in := d.childrenOf(parent)
	if in == nil {
		return false
	}
	before := len(*in)
	*in = slices.DeleteFunc(*in, func(g Group) bool { return g.Name == name })
	return len(*in) < before
}

// Split splits a path into the path of the parent, "" for a top-level group, and the name.
func Split(path string) (parent, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// Clone returns a copy whose groups can be changed independently of the direction.
func (d *Direction) Clone() *Direction {
	if d == nil {
		return nil
	}
	c := *d
	c.Groups = cloneGroups(d.Groups)
	return &c
}

// cloneGroups copies the groups. The lists inside the selectors are shared, because they are
// never changed in place.
func cloneGroups(groups []Group) []Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Match = slices.Clone(out[i].Match)
		out[i].Groups = cloneGroups(out[i].Groups)
	}
	return out
}
