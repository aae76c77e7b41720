package share

import (
	"fmt"

	"headgate.dev/headgate/unit"
)

// Unlimited is the limit of a flow that has no meter.
const Unlimited = unit.MaxRate

// BestEffort is the class of flows without a reservation. LowestClass is the number of the last
// QoS class.
const (
	BestEffort  = 0
	LowestClass = 4
)

// ReservedFlow is a flow of a network in which bandwidth is reserved (reservations, equation
// 3.1, without the header fields). It stands for all traffic of one reservation, or for the
// best-effort traffic of one path.
type ReservedFlow struct {
	// Key identifies the flow when the network changes, for example by the id of its
	// reservation. Keys of a network differ.
	Key string
	// Links lists the indices of the directed links that the flow crosses. Duplicates count
	// once.
	Links []int
	// Reserved is the rate that the flow gets whenever it has demand. The reservations of each
	// link total at most its capacity. For best effort it is the static meter of
	// StaticMeters, the minimum rate of the queue, and in Adaptive what it gets while nobody
	// needs it; AQoS ignores it.
	Reserved unit.Rate
	// Class is 1 (QoS1, served first) to 4, or BestEffort.
	Class int
	// Unresponsive reports that its senders do not send less when packets are dropped, as those of UDP: what they offer is what they want.
	Unresponsive bool
}

// ReservedNetwork is the capacity of each directed link, and the flows that cross them.
// All rates are of the same layer.
type ReservedNetwork struct {
	Capacities []unit.Rate
	Flows      []ReservedFlow
}

// Scheme decides the rate limit of each flow, once per cycle, from the rates that the flows
// offered. It has no clock: a cycle is one call of Cycle.
type Scheme interface {
	// SetNetwork replaces the network and returns the limit of each flow until the next Cycle,
	// in the order of n.Flows. A flow whose key the previous network had keeps its state; a new
	// flow begins with the limit of its reservation. The scheme keeps no reference to n.
	// SetNetwork panics if a class or the index of a link is out of range, or two flows have
	// the same key.
	SetNetwork(n ReservedNetwork) (limits []unit.Rate)
	// Cycle takes the offered rate of each flow in the cycle that has ended, counted before
	// the meter, and returns the limit of each flow in the next cycle, both in the order of
	// the flows of SetNetwork. The limit is Unlimited for a flow without a meter. For a flow
	// that was not measured in the cycle, the caller passes the previous rate again.
	// Cycle panics if the number of rates is not the number of flows.
	Cycle(offered []unit.Rate) (limits []unit.Rate)
}

// Replacer is a Scheme that ends a cycle and replaces the network in one step, with one division of the links instead of two.
type Replacer interface {
	// CycleOn is SetNetwork followed by Cycle. offered has the rates of the flows of n; those of new flows are ignored.
	CycleOn(n ReservedNetwork, offered []unit.Rate) (limits []unit.Rate)
}

// Tighter is a Scheme that knows where flows do without what they offered in the last part of a cycle.
type Tighter interface {
	// Tight reports whether the flow with the index i may exceed its limit if its rate changes within a cycle, as where links are full. Elsewhere the
	// change can wait for the end of the cycle.
	Tight(i int) bool
}

// Ender is a Scheme that can use what flows offered in the last part of a cycle.
type Ender interface {
	// End tells the next Cycle or CycleOn, in the order of its offered rates, what the flows offered in the last part of the cycle: less than half of
	// it, so that a rate that has changed before is seen as it is now, and not as a mean of before and now. The rate of the whole cycle
	// stands for one that was not measured.
	End(offered []unit.Rate)
}

// Wanter is a Scheme that can use what is known of flows that offer less than they want, because their limits hold them.
type Wanter interface {
	// Want tells the next Cycle or CycleOn, in the order of its offered rates, the least that each flow wants; 0 if that is what it offers.
	Want(least []unit.Rate)
}

// Riser is a Scheme that can raise limits within a cycle.
type Riser interface {
	// Rise takes what flows were seen to offer above their limits in a part of the cycle, in the order of the flows of SetNetwork, 0 for the others, and returns the
	// limits until the next Cycle. A flow whose noise explains what it offers keeps its limit. It is no sample of what they offer: Cycle gets that of the whole cycle.
	Rise(seen []unit.Rate) (limits []unit.Rate)
}

// Drainer is a Scheme that can leave a part of links free for a cycle, so that queues there empty.
type Drainer interface {
	// Drain tells the next Cycle or CycleOn how much of each link is to be free, in the order of its capacities. What is reserved and claimed is not taken for it.
	Drain(free []unit.Rate)
}

// Dropper is a Scheme that can use which flows lose packets at their limits.
type Dropper interface {
	// Drop tells the next Cycle or CycleOn, in the order of its offered rates, which flows lost packets at their limits. Without it all may have.
	Drop(dropped []bool)
}

// CycleOn replaces the network of a scheme and ends a cycle.
func CycleOn(s Scheme, n ReservedNetwork, offered []unit.Rate) (limits []unit.Rate) {
	if r, ok := s.(Replacer); ok {
		return r.CycleOn(n, offered)
	}
	s.SetNetwork(n)
	return s.Cycle(offered)
}

// reservation returns the guarantee of the flow in the adaptive schemes: best effort has none.
func reservation(f ReservedFlow) unit.Rate {
	if f.Class == BestEffort {
		return 0
	}
	return f.Reserved
}

// claim returns the claim of a flow with a demand for AllocateLinks with Priority: the reservation
// is the guarantee, and spare bandwidth goes to class 1 first and to best effort last.
func (f ReservedFlow) claim(demand unit.Rate) Claim {
	c := Claim{Parent: -1, Links: f.Links, Guarantee: reservation(f), Ceiling: Unlimited, Priority: f.Class, Demand: demand}
	if f.Class == BestEffort {
		c.Priority = LowestClass + 1
	}
	return c
}

// check panics if the network is invalid in a way that SetNetwork documents.
func (n ReservedNetwork) check() {
	seen := make(map[string]bool, len(n.Flows))
	for _, f := range n.Flows {
		if seen[f.Key] {
			panic(fmt.Sprintf("share: two flows have the key %q", f.Key))
		}
		seen[f.Key] = true
		if f.Class < BestEffort || f.Class > LowestClass {
			panic(fmt.Sprintf("share: flow %q has class %d", f.Key, f.Class))
		}
		for _, l := range f.Links {
			if l < 0 || l >= len(n.Capacities) {
				panic(fmt.Sprintf("share: flow %q crosses link %d of %d", f.Key, l, len(n.Capacities)))
			}
		}
	}
}

// clone returns a copy that shares no memory with n. Each path of the copy has each link once.
func (n ReservedNetwork) clone() ReservedNetwork {
	c := ReservedNetwork{Capacities: append([]unit.Rate(nil), n.Capacities...), Flows: append([]ReservedFlow(nil), n.Flows...)}
	for i, f := range c.Flows {
		c.Flows[i].Links = append([]int(nil), distinct(f.Links)...)
	}
	return c
}

// checkOffered panics if a scheme for n flows gets another number of offered rates.
func checkOffered(offered []unit.Rate, n int) {
	if len(offered) != n {
		panic(fmt.Sprintf("share: %d offered rates for %d flows", len(offered), n))
	}
}
