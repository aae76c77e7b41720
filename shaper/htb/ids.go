package htb

import (
	"fmt"

	"headgate/group"
)

// classIDs gives every group a minor number: the one it has, or the lowest that
// is free. A group that turns from a leaf into a parent of groups is another
// class, because HTB changes one into the other only by losing its queue; hence
// the slash behind a parent's key.
func classIDs(t group.Tree, have map[string]uint16) (map[string]uint16, error) {
	ids := make(map[string]uint16, len(t.Nodes))
	taken := make(map[uint16]bool, len(t.Nodes))
	for _, n := range t.Nodes {
		if id, ok := have[idKey(n)]; ok {
			ids[idKey(n)], taken[id] = id, true
		}
	}
	next := uint16(firstMinor)
	for _, n := range t.Nodes {
		if _, ok := ids[idKey(n)]; ok {
			continue
		}
		for taken[next] {
			next++
		}
		if next > lastMinor {
			return nil, fmt.Errorf("there are more groups than class ids: %d at most", lastMinor-firstMinor+1)
		}
		ids[idKey(n)], taken[next] = next, true
	}
	return ids, nil
}

func idKey(n group.Node) string {
	if n.Leaf {
		return n.Path
	}
	return n.Path + "/"
}
