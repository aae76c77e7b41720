package htb

import (
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// TestApproximate: quanta are between a packet and 20 ms, which is 32 packets at 100 Mbit/s.
func TestApproximate(t *testing.T) {
	tree := func(guarantees ...unit.Rate) group.Tree {
		out := group.Tree{Limit: 100 * unit.Mbit, Spare: group.Proportional}
		for i, g := range guarantees {
			out.Nodes = append(out.Nodes, group.Node{Path: string(rune('a' + i)), Parent: -1, Depth: 1, Leaf: true, Guarantee: g, Ceiling: out.Limit})
		}
		return out
	}
	if got := DisproportionateLending(tree(30*unit.Mbit, unit.Mbit, 0)); got != nil {
		t.Errorf("guarantees of 30:1: %+v", got)
	}
	got := DisproportionateLending(tree(90*unit.Mbit, unit.Mbit))
	if len(got) != 1 || got[0].Highest != "a" || got[0].Lowest != "b" || got[0].GuaranteeRatio != 90 || got[0].LentRatio > 40 || got[0].LentRatio < 20 {
		t.Errorf("guarantees of 90:1: %+v", got)
	}
	equal := tree(90*unit.Mbit, unit.Mbit)
	equal.Spare = group.Equal
	if got := DisproportionateLending(equal); got != nil {
		t.Errorf("equal parts: %+v", got)
	}
	// The same in a parent group with 10 Mbit/s, whose largest quantum is at least 16 times the
	// smallest.
	inner := tree(10*unit.Mbit, 9*unit.Mbit, 100*unit.Kbit)
	inner.Nodes[0].Leaf = false
	for i := 1; i < 3; i++ {
		inner.Nodes[i].Parent, inner.Nodes[i].Depth = 0, 2
	}
	if got := DisproportionateLending(inner); len(got) != 1 || got[0].Parent != "a" || got[0].GuaranteeRatio != 90 || got[0].LentRatio < 15 {
		t.Errorf("in a group: %+v", got)
	}
}
