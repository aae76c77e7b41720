package summary

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
)

// Notes returns notes about the groups whose guarantee does not cover the guarantees of all of their clients, and
// those of relay agents and networks.
func Notes(set config.Set) (out []config.Note) {
	for _, r := range set.Relays {
		out = append(out, r.Notes...)
	}
	for _, n := range set.Networks {
		out = append(out, n.Notes...)
	}
	for _, i := range set.Interfaces {
		for _, d := range []struct {
			name   string
			tree   *group.Tree
			groups *group.Direction
		}{{"out", i.OutTree, i.Out}, {"in", i.InTree, i.In}} {
			if d.tree == nil || d.groups == nil {
				continue
			}
			for _, n := range d.tree.Nodes {
				most, all := n.GuaranteedClients()
				if all {
					continue
				}
				out = append(out, i.Note(groupKey(d.name, d.groups.Groups, n.Path), "of %d clients, %d at once can have their guarantee of %v: the clients together are guaranteed %v, the part that sibling groups leave; if more are active they share it equally",
					n.Clients.Most, most, n.Clients.Guarantee, n.Guarantee))
			}
		}
	}
	return out
}

// groupKey returns the key of a group in its document, such as "out.groups[1].groups[0]".
func groupKey(where string, groups []group.Group, path string) string {
	for i, g := range groups {
		at := fmt.Sprintf("%s.groups[%d]", where, i)
		if g.Name == path {
			return at
		}
		if rest, inside := strings.CutPrefix(path, g.Name+"/"); inside {
			return groupKey(at, g.Groups, rest)
		}
	}
	return where
}
