package classifier

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// drawTree returns nested groups, some with guarantees and ceilings.
func drawTree(t *rapid.T) group.Tree {
	tree := group.Tree{Limit: unit.Rate(rapid.Int64Range(1e6, 1e11).Draw(t, "limit"))}
	var add func(parent int, depth int, guarantee, ceiling unit.Rate)
	add = func(parent, depth int, guarantee, ceiling unit.Rate) {
		n := rapid.IntRange(1, 6).Draw(t, "groups")
		for i := range n {
			node := group.Node{Path: fmt.Sprint(parent, "/", i), Parent: parent, Leaf: depth == group.MaxDepth || rapid.Bool().Draw(t, "leaf")}
			node.Guarantee = guarantee * unit.Rate(rapid.IntRange(0, 100).Draw(t, "guarantee")) / unit.Rate(100*n)
			node.Ceiling = max(node.Guarantee, ceiling*unit.Rate(rapid.IntRange(1, 100).Draw(t, "ceiling"))/100)
			tree.Nodes = append(tree.Nodes, node)
			if !node.Leaf {
				add(len(tree.Nodes)-1, depth+1, node.Guarantee, node.Ceiling)
			}
		}
	}
	add(-1, 1, tree.Limit, tree.Limit)
	return tree
}

// TestReservedWithinCeilings: at every level, the rates reserved for the leaves total at most the
// ceiling, so that no group exceeds its ceiling and the control class's guarantee suffices.
func TestReservedWithinCeilings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t)
		sums := make([]unit.Rate, len(tree.Nodes))
		var all unit.Rate
		for i, kept := range reservedRates(tree) {
			if tree.Nodes[i].Leaf && kept == 0 && tree.Nodes[i].Ceiling > 1000 {
				t.Errorf("no rate is reserved for %+v", tree.Nodes[i])
			}
			all += kept
			for j := i; j >= 0; j = tree.Nodes[j].Parent {
				sums[j] += kept
			}
		}
		if all > tree.Limit {
			t.Errorf("%v are reserved of a limit of %v", all, tree.Limit)
		}
		for i, n := range tree.Nodes {
			if sums[i] > n.Ceiling {
				t.Errorf("%v are reserved in %+v", sums[i], n)
			}
		}
	})
}

func TestAllowances(t *testing.T) {
	tree := group.Tree{Limit: 20 * unit.Mbit, Nodes: []group.Node{
		{Path: "a", Parent: -1, Depth: 1, Guarantee: 4 * unit.Mbit, Ceiling: 10 * unit.Mbit},
		{Path: "a/b", Parent: 0, Depth: 2, Leaf: true, Guarantee: 2 * unit.Mbit, Ceiling: 10 * unit.Mbit},
		{Path: "c", Parent: -1, Depth: 1, Leaf: true, Ceiling: 20 * unit.Mbit},
	}}
	minors, values := AllowancesOf(tree, func(node int) uint16 { return uint16(16 + node) }, 1, nil)
	// The time per byte at a 200th of a rate, in 1/1024 ns.
	at := func(r unit.Rate, ackParts uint64) [3]uint64 {
		t := 200 * 1e9 * 1024 / uint64(r/8)
		return [3]uint64{acks: t / ackParts, links: t}
	}
	want := []Allowance{
		{MostByteTime: at(20*unit.Mbit, 6)},
		{MostByteTime: at(10*unit.Mbit, 5), Parent: 1},
		{MostByteTime: at(10*unit.Mbit, 5), KeptByteTime: at(6*unit.Mbit, 5), Parent: 16},
		{MostByteTime: at(20*unit.Mbit, 6), KeptByteTime: at(5*unit.Mbit, 6), Parent: 1},
	}
	for i, v := range values {
		if v != want[i] || minors[i] != []uint32{1, 16, 17, 18}[i] {
			t.Errorf("class %d: %+v, want %+v", minors[i], v, want[i])
		}
	}
}
