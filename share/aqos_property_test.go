package share

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"
	"pgregory.net/rapid"
)

// TestAQoSProperties: over any rates and changes of the network, the limits of no link exceed its
// capacity, a flow that keeps a rate has its reservation or that rate, and a flow that slept
// has it in the next cycle.
func TestAQoSProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawReserved(t)
		s := &AQoS{}
		check := func(limits []unit.Rate) {
			for l, c := range n.Capacities {
				var sum unit.Rate
				for i, f := range n.Flows {
					if slices.Contains(f.Links, l) {
						sum += limits[i]
					}
				}
				if sum > c {
					t.Fatalf("the limits of link %d total %d of %d: %v", l, sum, c, limits)
				}
			}
		}
		check(s.SetNetwork(n))
		var limits []unit.Rate
		for range rapid.IntRange(0, 12).Draw(t, "cycles") {
			limits = s.Cycle(drawRates(t, n, "offered"))
			check(limits)
			if rapid.Bool().Draw(t, "change") {
				n = changeReserved(t, n)
				check(s.SetNetwork(n))
			}
		}
		steady := drawRates(t, n, "steady")
		for range 2 * aqosUsed {
			limits = s.Cycle(steady)
			check(limits)
		}
		wantReservations(t, n, steady, limits, "a steady flow")
		sleeper := rapid.IntRange(0, len(n.Flows)-1).Draw(t, "sleeper")
		rate := steady[sleeper]
		steady[sleeper] = 0
		for range 2 * aqosUsed {
			s.Cycle(steady)
		}
		steady[sleeper] = rate
		limits = s.Cycle(steady)
		check(limits)
		wantReservations(t, n, steady, limits, "a flow that wakes")
	})
}

func wantReservations(t *rapid.T, n ReservedNetwork, offered, limits []unit.Rate, what string) {
	for i, f := range n.Flows {
		if f.Class != BestEffort && limits[i] < min(offered[i], f.Reserved) {
			t.Fatalf("%s: the limit of flow %d is %d, it offers %d and its reservation is %d", what, i, limits[i], offered[i], f.Reserved)
		}
	}
}

// changeReserved removes a flow, halves its reservation, or moves it to the first place.
func changeReserved(t *rapid.T, n ReservedNetwork) ReservedNetwork {
	n = n.clone()
	i := rapid.IntRange(0, len(n.Flows)-1).Draw(t, "flow")
	f := n.Flows[i]
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		if len(n.Flows) > 1 {
			n.Flows = slices.Delete(n.Flows, i, i+1)
		}
	case 1:
		n.Flows[i].Reserved /= 2
	case 2:
		n.Flows = slices.Insert(slices.Delete(n.Flows, i, i+1), 0, f)
	case 3: // a new reservation of what the halved one leaves
		n.Flows[i].Reserved /= 2
		f.Reserved /= 2
		for slices.ContainsFunc(n.Flows, func(g ReservedFlow) bool { return g.Key == f.Key }) {
			f.Key += "'"
		}
		n.Flows = append(n.Flows, f)
	}
	return n
}
