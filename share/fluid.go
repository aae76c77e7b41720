package share

import (
	"slices"

	"headgate.dev/headgate/unit"
)

// Queue is one DiffServ queue at the beginning of a link (reservations, section 2.2): the flows
// of some classes, which get at least Minimum together if they have demand. Queues share what is
// left in proportion to their minimum rates, as HTB does with rates and a common ceil.
type Queue struct {
	Minimum unit.Rate
	Classes []int
}

// QueuesFor returns one queue for each of the given lists of classes, with the reservations of
// its flows that cross the link as minimum rate (reservations, table 5.1).
func QueuesFor(n ReservedNetwork, link int, classes ...[]int) []Queue {
	queues := make([]Queue, len(classes))
	for q, of := range classes {
		queues[q].Classes = of
		for _, f := range n.Flows {
			if slices.Contains(f.Links, link) && slices.Contains(of, f.Class) {
				queues[q].Minimum += f.Reserved
			}
		}
	}
	return queues
}

// Deliver is a fluid model of a network: it returns the rate of each flow after the last link of
// its path, if flow i sends the lower of offered[i] and limits[i]. An overloaded link divides
// its capacity among the flows in proportion to their rates of arrival, as a FIFO does. If
// queues has an entry for the link, it divides it among the queues, and each queue divides its
// rate so. Flows of a class without a queue share one with a minimum rate of 0. There are no
// packets, delays or buffers. Rates are exact but for rounding down at each link.
//
// A flow arrives at a link at the rate at which it leaves the previous link of its path.
// Deliver repeats the links until no rate changes; if paths form cycles in which rates never
// settle, it ends after 100 passes per link.
func Deliver(n ReservedNetwork, queues map[int][]Queue, offered, limits []unit.Rate) []unit.Rate {
	n.check()
	n = n.clone()
	checkOffered(offered, len(n.Flows))
	checkOffered(limits, len(n.Flows))
	// leaves[i][k] is the rate of flow i before the link k of its path; the last one is delivered.
	leaves := make([][]unit.Rate, len(n.Flows))
	crossing := make([][]hop, len(n.Capacities))
	for i, f := range n.Flows {
		sent := min(offered[i], limits[i], unit.MaxRate)
		leaves[i] = slices.Repeat([]unit.Rate{sent}, len(f.Links)+1)
		for k, l := range f.Links {
			crossing[l] = append(crossing[l], hop{i, k})
		}
	}
	changed := true
	for pass := 0; changed && pass < 100*len(n.Capacities); pass++ {
		changed = false
		for l, hops := range crossing {
			for h, rate := range cross(n, queues[l], l, hops, leaves) {
				after := &leaves[hops[h].flow][hops[h].at+1]
				changed = changed || *after != rate
				*after = rate
			}
		}
	}
	delivered := make([]unit.Rate, len(n.Flows))
	for i := range leaves {
		delivered[i] = leaves[i][len(leaves[i])-1]
	}
	return delivered
}

// hop is the passage of a flow over the link at a position of its path.
type hop struct{ flow, at int }

// cross returns the rates at which flows leave a link.
func cross(n ReservedNetwork, queues []Queue, link int, hops []hop, leaves [][]unit.Rate) []unit.Rate {
	queueOf := func(h hop) int {
		q := slices.IndexFunc(queues, func(q Queue) bool { return slices.Contains(q.Classes, n.Flows[h.flow].Class) })
		if q < 0 {
			return len(queues)
		}
		return q
	}
	claims := make([]Claim, len(queues)+1)
	for q := range claims {
		claims[q] = Claim{Parent: -1, Ceiling: unit.MaxRate}
		if q < len(queues) {
			claims[q].Guarantee, claims[q].Weight = queues[q].Minimum, uint64(queues[q].Minimum)
		}
	}
	for _, h := range hops {
		claims[queueOf(h)].Demand += leaves[h.flow][h.at]
	}
	rates := Allocate(n.Capacities[link], Proportional, claims)
	out := make([]unit.Rate, len(hops))
	for i, h := range hops {
		out[i] = leaves[h.flow][h.at]
		if q := queueOf(h); rates[q] < claims[q].Demand {
			out[i] = unit.Rate(mulDiv(uint64(out[i]), uint64(rates[q]), uint64(claims[q].Demand)))
		}
	}
	return out
}

// Ideal returns the rates that an oracle allocates which knows the offered rates: each
// reservation up to what its flow offers, and the rest by class, from QoS1 to best effort;
// equally within a class (max-min fair). No scheme delivers more to the classes in this order.
func Ideal(n ReservedNetwork, offered []unit.Rate) []unit.Rate {
	n.check()
	checkOffered(offered, len(n.Flows))
	claims := make([]Claim, len(n.Flows))
	for i, f := range n.Flows {
		claims[i] = f.claim(offered[i])
	}
	return AllocateLinks(n.Capacities, Priority, claims)
}
