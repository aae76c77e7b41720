package share

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"
	"pgregory.net/rapid"
)

func TestDeliver(t *testing.T) {
	unmetered := func(n int) []unit.Rate { return slices.Repeat([]unit.Rate{Unlimited}, n) }
	for _, c := range []struct {
		name            string
		network         ReservedNetwork
		queues          map[int][]Queue
		offered, limits []unit.Rate
		want            []unit.Rate
	}{
		{
			name:    "a FIFO divides in proportion to arrival",
			network: reservedLink(ReservedFlow{Key: "a", Class: 1}, ReservedFlow{Key: "b"}),
			offered: inMbit(15, 5), limits: unmetered(2), want: inMbit(7.5, 2.5),
		},
		{
			name:    "meters come first",
			network: reservedLink(ReservedFlow{Key: "a", Class: 1}, ReservedFlow{Key: "b"}),
			offered: inMbit(15, 5), limits: []unit.Rate{3 * unit.Mbit, Unlimited}, want: inMbit(3, 5),
		},
		{
			name: "a flow leaves bandwidth on its second link by its loss on the first",
			network: ReservedNetwork{Capacities: inMbit(10, 10), Flows: []ReservedFlow{
				{Key: "both", Links: []int{0, 1}}, {Key: "first", Links: []int{0}}, {Key: "second", Links: []int{1}}}},
			offered: inMbit(10, 10, 5), limits: unmetered(3), want: inMbit(5, 5, 5),
		},
		{
			name: "links in the other order of their numbers",
			network: ReservedNetwork{Capacities: inMbit(10, 10), Flows: []ReservedFlow{
				{Key: "both", Links: []int{1, 0}}, {Key: "first", Links: []int{1}}, {Key: "second", Links: []int{0}}}},
			offered: inMbit(10, 10, 5), limits: unmetered(3), want: inMbit(5, 5, 5),
		},
		{
			name:    "queues: minimum rates, and the rest by minimum rates",
			network: reservedLink(ReservedFlow{Key: "a", Class: 1}, ReservedFlow{Key: "b", Class: 2}, ReservedFlow{Key: "c"}),
			queues:  map[int][]Queue{0: {{1 * unit.Mbit, []int{1}}, {3 * unit.Mbit, []int{2}}, {6 * unit.Mbit, []int{BestEffort}}}},
			offered: inMbit(9, 9, 2), limits: unmetered(3), want: inMbit(2, 6, 2),
		},
		{
			name:    "flows of one queue share it as a FIFO",
			network: reservedLink(ReservedFlow{Key: "a", Class: 1}, ReservedFlow{Key: "b", Class: 2}, ReservedFlow{Key: "c"}),
			queues:  map[int][]Queue{0: {{4 * unit.Mbit, []int{1, 2}}, {6 * unit.Mbit, []int{BestEffort}}}},
			offered: inMbit(9, 3, 9), limits: unmetered(3), want: inMbit(3, 1, 6),
		},
		{
			name:    "a class without a queue has no minimum rate",
			network: reservedLink(ReservedFlow{Key: "a", Class: 1}, ReservedFlow{Key: "b", Class: 4}),
			queues:  map[int][]Queue{0: {{4 * unit.Mbit, []int{1}}}},
			offered: inMbit(8, 9), limits: unmetered(2), want: inMbit(8, 2),
		},
	} {
		if got := Deliver(c.network, c.queues, c.offered, c.limits); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestQueuesFor(t *testing.T) {
	n := ReservedNetwork{Capacities: inMbit(10, 10), Flows: []ReservedFlow{
		{Key: "a", Class: 1, Links: []int{0}, Reserved: 1}, {Key: "b", Class: 2, Links: []int{0, 1}, Reserved: 2}, {Key: "c", Links: []int{0}, Reserved: 4}}}
	got := QueuesFor(n, 1, []int{1, 2}, []int{BestEffort})
	if got[0].Minimum != 2 || got[1].Minimum != 0 {
		t.Errorf("%v: only flows that cross the link count", got)
	}
}

// drawReserved draws a network whose reservations fit its links, and paths without cycles.
func drawReserved(t *rapid.T) ReservedNetwork {
	n := ReservedNetwork{Capacities: make([]unit.Rate, rapid.IntRange(1, 4).Draw(t, "links"))}
	left := make([]unit.Rate, len(n.Capacities))
	for l := range n.Capacities {
		n.Capacities[l] = unit.Rate(rapid.IntRange(0, 10_000).Draw(t, "capacity"))
		left[l] = n.Capacities[l]
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "flows") {
		f := ReservedFlow{Key: string(rune('a' + i)), Class: rapid.IntRange(0, LowestClass).Draw(t, "class")}
		free := unit.Rate(10_000)
		for l := range n.Capacities {
			if rapid.Bool().Draw(t, "crosses") {
				f.Links = append(f.Links, l)
				free = min(free, left[l])
			}
		}
		if f.Class != BestEffort {
			f.Reserved = unit.Rate(rapid.IntRange(0, int(free)).Draw(t, "reserved"))
			for _, l := range f.Links {
				left[l] -= f.Reserved
			}
		}
		n.Flows = append(n.Flows, f)
	}
	return n
}

func drawRates(t *rapid.T, n ReservedNetwork, name string) []unit.Rate {
	out := make([]unit.Rate, len(n.Flows))
	for i := range out {
		out[i] = unit.Rate(rapid.IntRange(0, 12_000).Draw(t, name))
	}
	return out
}

func drawQueues(t *rapid.T, n ReservedNetwork) map[int][]Queue {
	queues := map[int][]Queue{}
	for l := range n.Capacities {
		if rapid.Bool().Draw(t, "queues") {
			queues[l] = QueuesFor(n, l, []int{1, 2}, []int{3}, []int{BestEffort})
		}
	}
	return queues
}

// TestDeliverProperties: nothing is created, no link carries more than its capacity, a flow is
// only cut at a full link, and where the sums fit nothing is cut.
func TestDeliverProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawReserved(t)
		offered, limits := drawRates(t, n, "offered"), drawRates(t, n, "limit")
		got := Deliver(n, drawQueues(t, n), offered, limits)
		arriving, carried := make([]unit.Rate, len(n.Capacities)), make([]unit.Rate, len(n.Capacities))
		for i, f := range n.Flows {
			for _, l := range f.Links {
				arriving[l] += min(offered[i], limits[i])
				carried[l] += got[i]
			}
		}
		for l, c := range n.Capacities {
			if carried[l] > c {
				t.Fatalf("link %d carries %d of %d", l, carried[l], c)
			}
		}
		for i, f := range n.Flows {
			sent := min(offered[i], limits[i])
			overloaded := slices.ContainsFunc(f.Links, func(l int) bool { return arriving[l] > n.Capacities[l] })
			if got[i] > sent || !overloaded && got[i] != sent {
				t.Fatalf("flow %d sends %d, of which %d arrive; overloaded: %v", i, sent, got[i], overloaded)
			}
		}
		if len(n.Capacities) == 1 && arriving[0] > n.Capacities[0] && carried[0]+unit.Rate(2*len(n.Flows)) < n.Capacities[0] {
			t.Fatalf("an overloaded link carries %d of %d", carried[0], n.Capacities[0])
		}
	})
}

// TestIdealProperties: the oracle's rates pass the network as they are, each flow has its
// reservation or what it offers, and no flow that offers more is below its ideal for a
// lower class: raising it needs bandwidth of a reservation or of its own or a higher class.
func TestIdealProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawReserved(t)
		offered := drawRates(t, n, "offered")
		ideal := Ideal(n, offered)
		if got := Deliver(n, nil, offered, ideal); !slices.Equal(got, ideal) {
			t.Fatalf("the network delivers %v of %v", got, ideal)
		}
		for i, f := range n.Flows {
			if f.Class == BestEffort {
				continue
			}
			if ideal[i] < min(offered[i], f.Reserved) {
				t.Fatalf("flow %d has %d of its reservation %d and offers %d", i, ideal[i], f.Reserved, offered[i])
			}
			if ideal[i] >= offered[i] {
				continue
			}
			// Some link of its path has no bit left that a lower class borrows.
			stuck := slices.ContainsFunc(f.Links, func(l int) bool {
				left := int64(n.Capacities[l])
				for k, g := range n.Flows {
					if slices.Contains(g.Links, l) {
						left -= int64(ideal[k])
						if g.Class == BestEffort || g.Class > f.Class {
							reserved := g.Reserved
							if g.Class == BestEffort {
								reserved = 0
							}
							left += max(0, int64(ideal[k])-int64(reserved))
						}
					}
				}
				return left < int64(len(n.Flows)) // of rounding
			})
			if !stuck {
				t.Fatalf("flow %d offers %d and has %d of %v, while lower classes borrow on each of its links", i, offered[i], ideal[i], ideal)
			}
		}
	})
}
