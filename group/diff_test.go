package group

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"
)

func TestDiff(t *testing.T) {
	tree := func(edit func(*Tree)) *Tree {
		t := &Tree{Limit: 100 * unit.Mbit, Spare: Proportional, Default: 1,
			Nodes: []Node{{Path: "web", Parent: -1, Leaf: true, Guarantee: 80 * unit.Mbit, Ceiling: 100 * unit.Mbit}, {Path: "rest", Parent: -1, Leaf: true, Ceiling: 100 * unit.Mbit}},
			Rules: []Rule{{Selector{Proto: []uint8{TCP}, DPort: []Range{SingleRange(80)}}, 0}},
		}
		if edit != nil {
			edit(t)
		}
		return t
	}
	for _, c := range []struct {
		name    string
		was, is *Tree
		want    []string
	}{
		{"equal", tree(nil), tree(nil), nil},
		{"rule and guarantee", tree(nil), tree(func(t *Tree) {
			t.Nodes[0].Guarantee = 50 * unit.Mbit
			t.Rules[0].Selector.DPort = []Range{SingleRange(443)}
		}), []string{
			"change out group web: guarantee 80Mbit -> 50Mbit",
			"change out rules of web: proto tcp dport 80 -> proto tcp dport 443",
		}},
		{"limit", tree(nil), tree(func(t *Tree) { t.Limit = 200 * unit.Mbit }), []string{"change out limit: 100Mbit -> 200Mbit"}},
		{"limit and a group", tree(nil), tree(func(t *Tree) { t.Limit = 200 * unit.Mbit; t.Nodes[1].Priority = 2 }),
			[]string{"change out limit: 100Mbit -> 200Mbit", "change out group rest: priority 0 -> 2"}},
		{"spare", tree(nil), tree(func(t *Tree) { t.Spare = Equal }), []string{"change out spare: proportional -> equal"}},
		{"default", tree(nil), tree(func(t *Tree) { t.Default = 0 }), []string{"change out default group: rest -> web"}},
		{"rule removed", tree(nil), tree(func(t *Tree) { t.Rules = nil }), []string{"change out rules of web: proto tcp dport 80 -> none"}},
		{"group removed", tree(nil), tree(func(t *Tree) { t.Nodes = t.Nodes[1:]; t.Rules, t.Default = nil, 0 }), []string{"remove out group web"}},
		{"new", nil, tree(nil), []string{"add    out limit: 100Mbit", "add    out group web: guarantee 80Mbit, ceiling 100Mbit", "add    out group rest: guarantee 0bit, ceiling 100Mbit"}},
		{"removed", tree(nil), nil, []string{"remove out limit: 100Mbit", "remove out group web", "remove out group rest"}},
		{"no shaping", nil, nil, nil},
		{"order", tree(func(t *Tree) { t.Rules = append(t.Rules, Rule{Selector{Proto: []uint8{UDP}}, 1}) }),
			tree(func(t *Tree) { t.Rules = append([]Rule{{Selector{Proto: []uint8{UDP}}, 1}}, t.Rules...) }), []string{"change out order of rules"}},
	} {
		var got []string
		for _, change := range Diff("out", c.was, c.is) {
			got = append(got, change.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
		if (len(got) == 0) != EqualTrees(c.was, c.is) {
			t.Errorf("%s: the trees are equal: %v", c.name, EqualTrees(c.was, c.is))
		}
	}
}

func TestDiffSettings(t *testing.T) {
	got := DiffSettings(Interface{Engine: HTB}, Interface{Engine: Quantum, GSO: "keep"})
	want := []Change{{"change", "engine", "htb -> quantum"}, {"change", "gso", "default -> keep"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
