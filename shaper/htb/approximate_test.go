package htb

import (
	"testing"

	"headgate/group"
	"headgate/unit"
)

// Turns are between a packet and 20 ms, which at 100 Mbit/s are 32 times as much.
func TestApproximate(t *testing.T) {
	tree := func(guarantees ...unit.Rate) group.Tree {
		out := group.Tree{Limit: 100 * unit.Mbit, Spare: group.Proportional}
		for i, g := range guarantees {
			out.Nodes = append(out.Nodes, group.Node{Path: string(rune('a' + i)), Parent: -1, Depth: 1, Leaf: true, Guarantee: g, Ceiling: out.Limit})
		}
		return out
	}
	if got := Approximate(tree(30*unit.Mbit, unit.Mbit, 0)); got != nil {
		t.Errorf("guarantees of 30:1: %+v", got)
	}
	got := Approximate(tree(90*unit.Mbit, unit.Mbit))
	if len(got) != 1 || got[0].Most != "a" || got[0].Least != "b" || got[0].Wanted != 90 || got[0].Lent > 40 || got[0].Lent < 20 {
		t.Errorf("guarantees of 90:1: %+v", got)
	}
	equal := tree(90*unit.Mbit, unit.Mbit)
	equal.Spare = group.Equal
	if got := Approximate(equal); got != nil {
		t.Errorf("equal parts: %+v", got)
	}
	// The same in a group that has 10 Mbit/s of its own, whose turns are at least 16 times.
	inner := tree(10*unit.Mbit, 9*unit.Mbit, 100*unit.Kbit)
	inner.Nodes[0].Leaf = false
	for i := 1; i < 3; i++ {
		inner.Nodes[i].Parent, inner.Nodes[i].Depth = 0, 2
	}
	if got := Approximate(inner); len(got) != 1 || got[0].Parent != "a" || got[0].Wanted != 90 || got[0].Lent < 15 {
		t.Errorf("in a group: %+v", got)
	}
}
