package share

import (
	"fmt"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// TestAdaptiveInvariants: on random networks whose flows come, go and change, no link carries more
// than its capacity; a flow that offered its reservation has it in the next cycle; and a flow gets
// less than its claim only if a path is full with claims of the same or a higher class, or with
// reservations.
func TestAdaptiveInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantum := unit.Share(rapid.SampledFrom([]unit.Share{0, DefaultQuantum}).Draw(t, "quantum"))
		a := NewAdaptive(quantum)
		next := 0
		n := ReservedNetwork{}
		for range rapid.IntRange(1, 4).Draw(t, "links") {
			n.Capacities = append(n.Capacities, unit.Rate(rapid.IntRange(1, 1000).Draw(t, "capacity"))*unit.Mbit)
		}
		for range rapid.IntRange(1, 5).Draw(t, "networks") {
			n.Flows = slices.DeleteFunc(slices.Clone(n.Flows), func(ReservedFlow) bool { return rapid.Bool().Draw(t, "ends") })
			for range rapid.IntRange(0, 5).Draw(t, "begin") {
				f := drawFlow(t, n, next)
				n.Flows, next = append(n.Flows, f), next+1
			}
			checkLimits(t, a, n, a.SetNetwork(n), nil)
			for range rapid.IntRange(0, 10).Draw(t, "cycles") {
				var offered, ends []unit.Rate
				for range n.Flows {
					offered = append(offered, unit.Rate(rapid.IntRange(0, 1500).Draw(t, "offered"))*unit.Mbit/2)
					ends = append(ends, unit.Rate(rapid.IntRange(0, 1500).Draw(t, "end"))*unit.Mbit/2)
				}
				if rapid.Bool().Draw(t, "the ends are known") {
					a.End(ends)
				}
				checkLimits(t, a, n, a.Cycle(offered), offered)
			}
		}
	})
}

// drawFlow draws a flow whose reservation fits beside the others.
func drawFlow(t *rapid.T, n ReservedNetwork, key int) ReservedFlow {
	f := ReservedFlow{Key: fmt.Sprint(key), Class: rapid.IntRange(0, 4).Draw(t, "class")}
	f.Links = rapid.SliceOfNDistinct(rapid.IntRange(0, len(n.Capacities)-1), 1, len(n.Capacities), rapid.ID).Draw(t, "path")
	left := Unlimited
	for _, l := range f.Links {
		free := n.Capacities[l]
		for _, g := range n.Flows {
			if slices.Contains(g.Links, l) {
				free -= reservation(g)
			}
		}
		left = min(left, free)
	}
	if f.Class != BestEffort {
		f.Reserved = unit.Rate(rapid.Uint64Range(0, uint64(left)).Draw(t, "reserved"))
	}
	return f
}

func checkLimits(t *rapid.T, a *Adaptive, n ReservedNetwork, limits, offered []unit.Rate) {
	carried := make([]unit.Rate, len(n.Capacities))
	for i, f := range n.Flows {
		for _, l := range f.Links {
			carried[l] += limits[i]
		}
	}
	for l, c := range n.Capacities {
		if carried[l] > c {
			t.Fatalf("link %d carries %v of %v", l, carried[l], c)
		}
	}
	for i, f := range n.Flows {
		if r := reservation(f); offered != nil && offered[i] >= r && limits[i] < r {
			t.Fatalf("flow %d offered %v and has %v of its reservation of %v", i, offered[i], limits[i], r)
		}
		if limits[i]+a.quantum.Of(a.Claim(i))+1 >= a.Claim(i) {
			continue
		}
		if !slices.ContainsFunc(f.Links, func(l int) bool { return fullFor(a, n, limits, i, l, carried[l]) }) {
			t.Fatalf("flow %d of class %d has %v of %v, and no link of its path is full with what is served before it", i, f.Class, limits[i], a.Claim(i))
		}
	}
}

// fullFor reports whether a link is full, up to the quantum, and no flow of a lower class has more
// than its reservation of it.
func fullFor(a *Adaptive, n ReservedNetwork, limits []unit.Rate, flow, link int, carried unit.Rate) bool {
	turn := func(f ReservedFlow) int { return (f.Class + LowestClass) % (LowestClass + 1) }
	for i, f := range n.Flows {
		if slices.Contains(f.Links, link) && turn(f) > turn(n.Flows[flow]) && limits[i] > reservation(f)+1 {
			return false
		}
	}
	capacity := n.Capacities[link]
	return carried+a.quantum.Of(capacity)+unit.Rate(len(n.Flows)) >= capacity
}
