package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/group"
	"headgate/store"
)

// owners refuses owners who could have more than their groups. A tenant's rules see what its group
// lets through, so that a group without match would give it the whole interface: only one that is
// a default, which cannot be divided, is let be without. In a tenant's groups there is no other's:
// a tenant sees and changes all that is in them.
func owners(i *store.Interface) error {
	for _, at := range slices.Sorted(maps.Keys(i.Owners)) {
		direction, path, _ := strings.Cut(at, "/")
		tenant := i.Owners[at]
		parent, _ := group.Split(path)
		around := i.Owner(direction, parent)
		d := i.Direction(direction)
		if d == nil || d.At(path) == nil || around == tenant {
			continue
		}
		if around != "" {
			return fmt.Errorf("the group %s cannot be the tenant %s's: the group around it is %s's, who sees and changes all that is in it: put it beside that one", at, tenant, around)
		}
		if g := d.At(path); len(g.Match) == 0 && !g.Default {
			return fmt.Errorf("the group %s cannot be the tenant %s's without match, because rules in it would be for the whole interface: write match in it, or default: true if the tenant is not to divide it", at, tenant)
		}
	}
	return nil
}

// takes tells whether somebody may put connections in a group: it is a leaf, and somebody's own in
// each direction that has it, because that is where a connection goes.
func takes(i *store.Interface, path, tenant string) bool {
	leaf := false
	for _, direction := range directions {
		d := i.Direction(direction)
		if d == nil {
			continue
		}
		g := d.At(path)
		if g == nil {
			continue
		}
		if !sees(i, place{direction: direction, path: path}, store.Token{Tenant: tenant}) {
			return false
		}
		leaf = leaf || len(g.Groups) == 0
	}
	return leaf
}

// stay are the connections whose groups may have them still.
func stay(all map[string]store.Connection, i *store.Interface) map[string]store.Connection {
	out := map[string]store.Connection{}
	for name, c := range all {
		if takes(i, c.Group, c.Tenant) {
			out[name] = c
		}
	}
	return out
}

// owns tells whether a connection is a tenant's to put in a group, as far as its ends show: in each
// direction that has the group. Which of its ends is here is not known. It is a tenant's if it is
// so one way round, and no other tenant's the other way round.
func owns(i *store.Interface, path, tenant string, conn group.Packet) (bool, error) {
	turned := conn
	turned.Src, turned.SPort, turned.Dst, turned.DPort = conn.Dst, conn.DPort, conn.Src, conn.SPort
	mine, others := [2]bool{true, true}, [2]bool{}
	for _, direction := range directions {
		d := i.Direction(direction)
		if d == nil || d.At(path) == nil {
			continue
		}
		tree, problems := d.Resolve(direction, true)
		if len(problems) > 0 {
			return false, fmt.Errorf("interface %s: %w", i.Dev, problems[0])
		}
		ways := [2]group.Packet{conn, turned}
		if direction == "in" {
			ways[0], ways[1] = ways[1], ways[0]
		}
		for n, p := range ways {
			of, matched := ownerOf(i, direction, tree, p)
			mine[n] = mine[n] && of == tenant
			others[n] = others[n] || matched && of != "" && of != tenant
		}
	}
	return mine[0] && !others[1] || mine[1] && !others[0], nil
}

// ownerOf is the tenant whose a packet is, "" for the operator: whose the group is that the rules
// put it in; if none does, whose group lets it through; or else whose the default is, and then
// nothing has matched it. Rules that ask for more than ends match nothing here.
func ownerOf(i *store.Interface, direction string, tree group.Tree, p group.Packet) (tenant string, matched bool) {
	for _, r := range tree.Rules {
		if fits(r.Selector, p) {
			return i.Owner(direction, tree.Nodes[r.Node].Path), true
		}
	}
	each(i.Direction(direction).Groups, "", func(path string, g group.Group) (inside bool) {
		if matched || len(g.Match) > 0 && !slices.ContainsFunc(g.Match, func(s group.Selector) bool { return fits(s, p) }) {
			return false
		}
		tenant = i.Owners[direction+"/"+path]
		matched = tenant != "" && len(g.Match) > 0
		return !matched
	})
	if matched {
		return tenant, true
	}
	return i.Owner(direction, tree.Nodes[tree.Default].Path), false
}

// fits tells whether a selector matches by the ends alone.
func fits(s group.Selector, p group.Packet) bool {
	return s.OnlyEnds() && s.Matches(p)
}
