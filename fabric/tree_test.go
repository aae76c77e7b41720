package fabric

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// reach returns the switches that a switch reaches over links.
func reach(from DPID, links []LinkID) map[DPID]bool {
	seen := map[DPID]bool{from: true}
	for grown := true; grown; {
		grown = false
		for _, l := range links {
			if seen[l.From.Switch] && !seen[l.To.Switch] {
				seen[l.To.Switch], grown = true, true
			}
		}
	}
	return seen
}

// twoWay returns the links of cables that are usable in both directions.
func twoWay(t *Topology) (links []LinkID) {
	for _, l := range t.Links() {
		if t.Usable(l.LinkID) && t.Usable(l.Reverse()) {
			links = append(links, l.LinkID)
		}
	}
	return links
}

// TestTreeSpans: the tree connects what the cables connect, one cable fewer would not, and a broadcast arrives once at
// each switch of a component.
func TestTreeSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 8, 14).topology(t)
		tree := top.SpanningTree()
		n := 0
		for _, c := range tree.Components {
			n += len(c)
			all := reach(c[0], twoWay(top))
			if len(all) != len(c) || len(reach(c[0], tree.Links)) != len(c) {
				t.Fatalf("component %v, but the cables connect %v and the tree %v", c, all, reach(c[0], tree.Links))
			}
			for _, id := range c {
				arrived := map[DPID]int{}
				var send func(at DPID, in PortNo)
				send = func(at DPID, in PortNo) {
					if arrived[at]++; arrived[at] > 1 {
						t.Fatalf("a broadcast of %v arrives at %v again", id, at)
					}
					for _, p := range tree.Ports(at) {
						if p != in {
							l, _ := top.LinkFrom(PortID{at, p})
							send(l.To.Switch, l.To.Port)
						}
					}
				}
				send(id, 0)
				if len(arrived) != len(c) {
					t.Fatalf("a broadcast of %v arrives at %d of %d switches", id, len(arrived), len(c))
				}
			}
		}
		if n != len(top.Switches()) {
			t.Fatalf("components %v of %d switches", tree.Components, n)
		}
	})
}

// TestTreePrefersCheapCables: a cable that is not in the tree is worse than each cable of the tree between its ends.
func TestTreePrefersCheapCables(t *testing.T) {
	worse := func(top *Topology, a, b LinkID) bool {
		value := func(id LinkID) (cost uint16, capacity unit.Rate) {
			x, _ := top.Link(id)
			y, _ := top.Link(id.Reverse())
			return max(x.Cost, y.Cost), min(x.Capacity, y.Capacity)
		}
		costA, capacityA := value(a)
		costB, capacityB := value(b)
		return costA > costB || costA == costB && capacityA <= capacityB
	}
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 7, 12).topology(t)
		tree := top.SpanningTree()
		for _, l := range twoWay(top) {
			if slices.Contains(tree.Links, l) {
				continue
			}
			between := oraclePaths(top, l.From.Switch, l.To.Switch, func(m LinkID) bool { return slices.Contains(tree.Links, m) })
			if len(between) != 1 {
				t.Fatalf("the tree has %d paths between the ends of %v", len(between), l)
			}
			for _, m := range between[0] {
				if !worse(top, l, m) {
					t.Fatalf("%v is in the tree, and %v is not", m, l)
				}
			}
		}
	})
}

// TestTreeIsStable: a change of one cable changes at most one cable of the tree, and nothing if the cable is removed and
// was not in the tree.
func TestTreeIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t, 8, 14)
		old := parts.topology(t).SpanningTree()
		l := rapid.SampledFrom(parts.Links).Draw(t, "cable")
		changed := parts.without(l.LinkID)
		removed := rapid.Bool().Draw(t, "removed")
		if !removed {
			cost, capacity := rapid.Uint16Range(1, 4).Draw(t, "new cost"), rapid.SampledFrom([]unit.Rate{unit.Mbit, unit.Tbit}).Draw(t, "new capacity")
			changed.Links = append(changed.Links, Link{l.LinkID, capacity, Configured, cost, 0, 0}, Link{l.Reverse(), capacity, Configured, cost, 0, 0})
		}
		now := changed.topology(t).SpanningTree()
		gone, added := 0, 0
		for _, m := range old.Links {
			if !slices.Contains(now.Links, m) {
				gone++
			}
		}
		for _, m := range now.Links {
			if !slices.Contains(old.Links, m) {
				added++
			}
		}
		if gone > 2 || added > 2 { // two directions
			t.Fatalf("a change of %v removed %d and added %d links of the tree", l.LinkID, gone, added)
		}
		if removed && !slices.Contains(old.Links, l.LinkID) && gone+added > 0 {
			t.Fatalf("%v was not in the tree, and its removal changed it", l.LinkID)
		}
	})
}

func BenchmarkSpanningTree(b *testing.B) {
	top := mesh(1000, 3000).topology(b)
	for b.Loop() {
		top.SpanningTree()
	}
}
