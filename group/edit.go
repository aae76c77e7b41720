package group

import (
	"slices"
	"strings"
)

// At is the group at a path ("tenant/vm/web"), or nil. The group may be changed in place.
func (d *Direction) At(path string) *Group {
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

// below are the groups in a group, or the direction's own for "": nil if there is no such
// group.
func (d *Direction) below(path string) *[]Group {
	if path == "" {
		return &d.Groups
	}
	if g := d.At(path); g != nil {
		return &g.Groups
	}
	return nil
}

// Add puts a group into the group at a path, or into the direction itself for "". It tells
// whether that is there and has none of that name.
func (d *Direction) Add(parent string, g Group) bool {
	in := d.below(parent)
	if in == nil || slices.ContainsFunc(*in, func(have Group) bool { return have.Name == g.Name }) {
		return false
	}
	*in = append(*in, g)
	return true
}

// Remove takes the group at a path away, with what is in it, and tells whether it was there.
func (d *Direction) Remove(path string) bool {
	parent, name := Split(path)
	in := d.below(parent)
	if in == nil {
		return false
	}
	before := len(*in)
	*in = slices.DeleteFunc(*in, func(g Group) bool { return g.Name == name })
	return len(*in) < before
}

// Split is the parent's path, "" for a group of the direction itself, and the name.
func Split(path string) (parent, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// Clone is a copy of the groups that shares nothing with the direction.
func (d *Direction) Clone() *Direction {
	if d == nil {
		return nil
	}
	c := *d
	c.Groups = cloneGroups(d.Groups)
	return &c
}

// cloneGroups shares the selectors' lists, which nobody changes in place.
func cloneGroups(groups []Group) []Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Match = slices.Clone(out[i].Match)
		out[i].Groups = cloneGroups(out[i].Groups)
	}
	return out
}
