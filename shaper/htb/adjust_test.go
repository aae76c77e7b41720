package htb

import (
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// A limit that a class has is found again by the class, so that Apply sees no difference.
func TestLimitOfClass(t *testing.T) {
	for _, whole := range []unit.Rate{unit.Mbit, 100 * unit.Mbit, unit.Gbit, 400 * unit.Gbit} {
		b := builder{tree: group.Tree{Limit: whole}}
		for limit := unit.Rate(1); limit <= 2*whole; limit = limit*13/11 + 7 {
			got := clampLimit(limit, whole)
			if again := limitOfClass(b.classCeiling(got).BytesPerSecond(), whole); again != got {
				t.Fatalf("the limit %d of %d becomes %d, and then %d", limit, whole, got, again)
			}
			if limit >= group.MinRate && limit <= whole && (got > limit+16 || got+32 < limit) {
				t.Fatalf("the limit %d of %d becomes %d", limit, whole, got)
			}
			if got < group.MinRate-32 || got > whole {
				t.Fatalf("the limit %d becomes %d, which is not between the minimum and %d", limit, got, whole)
			}
		}
	}
}

// The limit changes nothing of a class but its ceiling.
func TestLimitChangesCeilingAlone(t *testing.T) {
	for _, rate := range []unit.Rate{unit.Mbit, 20 * unit.Mbit, 600 * unit.Mbit, 8 * unit.Gbit} {
		tree := group.Tree{Limit: 10 * unit.Gbit, Spare: group.Proportional, Nodes: []group.Node{
			{Path: "rest", Parent: -1, Depth: 1, Leaf: true, Ceiling: 10 * unit.Gbit},
			{Path: "a", Parent: -1, Depth: 1, Leaf: true, Guarantee: rate, Ceiling: 10 * unit.Gbit, Adjustable: true},
		}}
		classes := func(limit unit.Rate) []class {
			b := newBuilder(tree, linkFacts{mtu: 1500})
			b.limits = map[string]unit.Rate{"a": limit}
			return b.classes(func(node int) uint16 { return uint16(firstMinor + node) }, nil)
		}
		before := classes(10 * unit.Mbit)
		for _, limit := range []unit.Rate{10 * unit.Kbit, 100 * unit.Mbit, 10 * unit.Gbit} {
			after := classes(limit)
			if len(after) != len(before) {
				t.Fatalf("rate %v, limit %v: %d classes, before %d", rate, limit, len(after), len(before))
			}
			for i, c := range after {
				if c.path == "a" {
					if want := max((limit - limit/133).BytesPerSecond(), 1); limit < tree.Limit && c.htb.Ceil != want || c.ceiling != limit {
						t.Errorf("rate %v, limit %v: the ceiling is %d bytes/s, want %d", rate, limit, c.htb.Ceil, want)
					}
					c.htb.Ceil, c.htb.Cbuffer, c.ceiling = before[i].htb.Ceil, before[i].htb.Cbuffer, before[i].ceiling
				}
				if c != before[i] {
					t.Errorf("rate %v, limit %v: the class %+v was %+v", rate, limit, c, before[i])
				}
			}
		}
	}
}
