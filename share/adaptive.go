package share

import (
	"slices"

	"headgate.dev/headgate/unit"
)

// Constants of Adaptive, ours.
const (
	// leastFloor lets a TCP connection begin: an initial window of ten segments (RFC 6928) of
	// 1,514 bytes, once a second, is 121 kbit/s. A flow with a larger reservation sleeps at
	// 1/floorPart of it, which costs 1.6 % of what it does not use. The best-effort flows of a
	// link sleep at no more than this part of its capacity together.
	leastFloor = 128 * unit.Kbit
	floorPart  = 64
	// Best effort that sleeps on a link that is not full keeps half of what reservations leave. If it kept all, each flow that uses more than its
	// reservation would have an exact limit, which costs a message with each change of its rate, and packets with each rise. Best effort that does
	// not sleep keeps all.
	bestEffortPart = 2
	// A limit is tight if a flow that rises to tightOver times its claim, or that wakes, would exceed it, or if the link would be full if all flows rose so:
	// then what one is given must be what it offers at the end of the cycle, and not a mean.
	tightOver = 2
	// DefaultQuantum is 0.5 %, the quantum for meters.
	DefaultQuantum = unit.Whole / 200
)

// Adaptive is the default scheme. In each cycle it derives what each flow can use from its offered
// rates (demand), divides the links exactly among these claims (AllocateLinks with Priority): each
// flow first gets the lower of its reservation and its claim; the spare bandwidth goes to class
// 1, then 2 to 4, then to best effort. What no flow claims on a full path is slack, of which each
// flow gets a part, so that a network without congestion limits nobody.
//
// The loans of a flow that wakes are returned in the cycle in which its offered rate is seen, and the whole reservation of one that rises
// far beyond a limit below it. On a link that is not full, a flow that sleeps keeps what is promised to it. A
// flow that sleeps has a floor, so that a TCP connection can begin: the lower of its reservation
// and the higher of 128 kbit/s and 1/64 of the reservation; for best effort 128 kbit/s, or less
// where that would be more than 1/64 of a link for all best-effort flows together. A flow that offered its
// reservation or more has it in the next cycle, where the reservations fit.
//
// What an unresponsive flow offers is what it wants. It is not probed, and has the rate that it had after a leap, or its whole reservation until it was measured
// for a cycle.
//
// A rate that changes within a cycle is seen as it is at the end, if End tells it. If a flow alternates faster than the cycle, its limit
// is near its mean rate, and the burst size of its meter must cover the difference.
//
// Compared with the algorithm of the paper (reservations, section 3.3), the claims replace the
// tracking variable, trend replaces CALC-WINDOW, which was left open there, and the exact
// division replaces the pools; there is no growth buffer of 5 %.
//
// One cycle of 10,000 flows over 3,000 links, five each, takes 20 to 35 ms on one core
// (BenchmarkAdaptive), most of it in AllocateLinks. A constant flow at its limit on a full link
// is probed with 3 % of headroom for 2 of 66 cycles, which is two messages, unless its meter is known to drop nothing of it.
type Adaptive struct {
	net     ReservedNetwork
	quantum unit.Share
	flows   []demand
	floors  []float64
	claims  []Claim
	limits  []unit.Rate
	changed []int
	frame   unit.Rate
	ends    []unit.Rate // of the next cycle, nil if they are not known
	wants   []unit.Rate // for the next cycle, nil if nothing is known
	drops   []bool      // of the ended cycle, nil if they are not known
	busy    []bool      // by link: flows claim more than half of it
	// free is what links are to leave free until the next call of Drain, nil for nothing, and drained reports that some do in this cycle.
	free    []unit.Rate
	drained bool

	links           linkAllocator
	left            []unit.Rate // scratch of shares, by link
	sums            []uint64
	promised, slack []unit.Rate // the result of shares
}

var (
	_ Scheme   = (*Adaptive)(nil)
	_ Replacer = (*Adaptive)(nil)
	_ Ender    = (*Adaptive)(nil)
	_ Tighter  = (*Adaptive)(nil)
	_ Drainer  = (*Adaptive)(nil)
	_ Wanter   = (*Adaptive)(nil)
	_ Riser    = (*Adaptive)(nil)
	_ Dropper  = (*Adaptive)(nil)
)

// NewAdaptive returns a scheme without flows. A limit rises only by more than the quantum, a part
// of itself, because each change costs a message and resets the counters of a meter. A quantum of
// 0 gives exact limits. A limit falls whenever a link would otherwise be oversold.
func NewAdaptive(quantum unit.Share) *Adaptive { return &Adaptive{quantum: quantum} }

// CountsFrames tells how fast a flow is that sends one frame in a cycle. Counters of whole frames show a constant flow as one that varies by that much,
// which the bucket of a meter holds, so that it needs no margin. Without it counters are taken to be exact.
func (a *Adaptive) CountsFrames(each unit.Rate) { a.frame = each }

// End implements Ender.
func (a *Adaptive) End(offered []unit.Rate) { a.ends = offered }

// Want implements Wanter.
func (a *Adaptive) Want(least []unit.Rate) { a.wants = least }

// Drain implements Drainer.
func (a *Adaptive) Drain(free []unit.Rate) { a.free = free }

// Drop implements Dropper.
func (a *Adaptive) Drop(dropped []bool) { a.drops = dropped }

// Rise implements Riser.
func (a *Adaptive) Rise(seen []unit.Rate) []unit.Rate {
	checkOffered(seen, len(a.flows))
	for i, offers := range seen {
		f := &a.flows[i]
		if f.exceedsNoise(float64(offers)) {
			f.wants = max(f.wants, float64(offers))
		}
		// Nothing reserved is taken: best effort that wakes may not be the only one that does.
		f.wants = max(f.wants, float64(min(a.limits[i], reservation(a.net.Flows[i]))))
	}
	a.divide(nil)
	return slices.Clone(a.limits)
}

// capacities are those of the links without what they are to leave free.
func (a *Adaptive) capacities() (all []unit.Rate, drained bool) {
	free := a.free
	if len(free) != len(a.net.Capacities) || !slices.ContainsFunc(free, func(r unit.Rate) bool { return r > 0 }) {
		return a.net.Capacities, false
	}
	all = slices.Clone(a.net.Capacities)
	spare := slices.Clone(all)
	for i, f := range a.net.Flows {
		for _, l := range f.Links {
			spare[l] -= min(spare[l], min(a.claims[i].Demand, reservation(f)))
		}
	}
	for l := range all {
		all[l] -= min(free[l], spare[l])
	}
	return all, true
}

// SetNetwork implements Scheme. A new flow begins with at least its reservation, where the
// reservations fit; new best-effort traffic begins with a part of what is left.
func (a *Adaptive) SetNetwork(n ReservedNetwork) []unit.Rate {
	a.divide(a.set(n))
	return slices.Clone(a.limits)
}

// CycleOn implements Replacer.
func (a *Adaptive) CycleOn(n ReservedNetwork, offered []unit.Rate) []unit.Rate {
	checkOffered(offered, len(n.Flows))
	fresh := a.set(n)
	a.demand(offered, fresh)
	a.divide(fresh)
	return slices.Clone(a.limits)
}

// set replaces the network, and returns the flows that are new. Their limits are not set.
func (a *Adaptive) set(n ReservedNetwork) (fresh map[int]bool) {
	n.check()
	before := make(map[string]int, len(a.net.Flows))
	for i, f := range a.net.Flows {
		before[f.Key] = i
	}
	flows, limits := make([]demand, len(n.Flows)), make([]unit.Rate, len(n.Flows))
	fresh = map[int]bool{}
	for i, f := range n.Flows {
		if j, ok := before[f.Key]; ok {
			flows[i], limits[i] = a.flows[j], a.limits[j]
			continue
		}
		fresh[i] = true
		flows[i] = demand{trend: trend{counted: countNoise * float64(a.frame)}, claim: float64(f.Reserved), backoff: firstProbe, age: falseCycles, calm: forgiveCycles}
		if f.Class == BestEffort {
			flows[i].claim = float64(Unlimited)
		}
	}
	for i, f := range n.Flows {
		flows[i].unresponsive = f.Unresponsive
	}
	a.net, a.flows, a.limits = n.clone(), flows, limits
	if len(a.free) != len(n.Capacities) {
		a.free = nil // of another network
	}
	a.floors = floors(a.net)
	a.claims = make([]Claim, len(n.Flows))
	for i, f := range a.net.Flows {
		a.claims[i] = f.claim(0) // divide sets the demand
	}
	return fresh
}

// Cycle implements Scheme.
func (a *Adaptive) Cycle(offered []unit.Rate) []unit.Rate {
	checkOffered(offered, len(a.flows))
	a.demand(offered, nil)
	a.divide(nil)
	return slices.Clone(a.limits)
}

// demand takes the offered rates of the flows that are not fresh.
func (a *Adaptive) demand(offered []unit.Rate, fresh map[int]bool) {
	ends := a.ends
	if ends == nil {
		ends = offered
	}
	checkOffered(ends, len(a.flows))
	for i, f := range a.net.Flows {
		d := &a.flows[i]
		d.metered = i < len(a.drops)
		if d.lossless++; !d.metered || a.drops[i] {
			d.lossless = 0
		}
		if !fresh[i] {
			a.flows[i].next(float64(offered[i]), float64(ends[i]), float64(a.limits[i]), float64(reservation(f)), a.floors[i])
		}
	}
	if a.wants != nil {
		checkOffered(a.wants, len(a.flows))
	}
	for i := range a.flows {
		a.flows[i].wants = 0 // what Rise was told ends with its cycle
		if a.wants != nil {
			a.flows[i].wants = float64(a.wants[i])
		}
	}
	a.ends, a.wants, a.drops = nil, nil, nil
}

// Changed returns the indices of the flows whose limit the last call of Cycle or SetNetwork
// changed, or that the last SetNetwork added. Only these need a message to their meter.
func (a *Adaptive) Changed() []int { return a.changed }

// FalseSeizures returns how often bandwidth of the flow with the index i was seized and, because
// its rate rose again, returned within three cycles. After each, the flow's seizures are delayed.
func (a *Adaptive) FalseSeizures(i int) int { return a.flows[i].mistakes }

// Claim returns the rate that the flow with the index i can use, including headroom.
func (a *Adaptive) Claim(i int) unit.Rate { return a.flows[i].rate() }

// Tight implements Tighter.
func (a *Adaptive) Tight(i int) bool {
	f := a.net.Flows[i]
	return a.limits[i] < max(tightOver*a.Claim(i), reservation(f)) || slices.ContainsFunc(f.Links, func(l int) bool { return a.busy[l] })
}

// floors returns the least claim of each flow.
func floors(n ReservedNetwork) []float64 {
	sleepers := make([]unit.Rate, len(n.Capacities))
	for _, f := range n.Flows {
		if f.Class == BestEffort {
			for _, l := range f.Links {
				sleepers[l]++
			}
		}
	}
	all := make([]float64, len(n.Flows))
	for i, f := range n.Flows {
		least := min(f.Reserved, max(leastFloor, f.Reserved/floorPart))
		if f.Class == BestEffort {
			least = leastFloor
			for _, l := range f.Links {
				least = min(least, n.Capacities[l]/floorPart/sleepers[l])
			}
		}
		all[i] = float64(least)
	}
	return all
}

// divide sets the limits from the claims. The flows in fresh have none yet.
func (a *Adaptive) divide(fresh map[int]bool) {
	same := fresh == nil
	for i := range a.flows {
		claim := a.flows[i].rate()
		same = same && claim == a.claims[i].Demand
		a.claims[i].Demand = claim
	}
	a.changed = a.changed[:0:0]
	capacities, drained := a.capacities()
	if same = same && !drained && !a.drained; same {
		return // the limits that follow are those in force
	}
	a.drained = drained
	rates := a.links.allocate(capacities, Priority, a.claims)
	promised, slack := a.shares(capacities, rates)
	for i, least := range rates {
		// Any limit from the allocated rate up to the slack is right, so one that is in force
		// remains. A new one lies in the middle of the slack, far from both ends.
		now, most := a.limits[i], least+promised[i]+slack[i]
		enough := now >= least || now >= min(least, reservation(a.net.Flows[i])) && least-now <= a.quantum.Of(least)
		if now <= most && enough && !fresh[i] {
			continue
		}
		if limit := least + promised[i] + slack[i]/2; limit != now || fresh[i] {
			a.limits[i] = limit
			a.changed = append(a.changed, i)
		}
	}
}

// shares divides the capacity that no flow claims. First each flow gets what is promised of its reservation, so that one that wakes on a link
// that is not full loses nothing, and best effort what reservations leave, or half of it while it sleeps. The rest is divided in proportion to the
// rates: each flow gets the least of its parts of the links that it crosses, so that one that grows beyond its reservation is not held back.
func (a *Adaptive) shares(capacities, rates []unit.Rate) (promised, slack []unit.Rate) {
	a.left, a.sums = append(a.left[:0], capacities...), sized(a.sums, len(capacities))
	left, sums := a.left, a.sums
	for i, f := range a.net.Flows {
		for _, l := range f.Links {
			left[l] -= rates[i]
			sums[l] += uint64(rates[i]) + 1
		}
	}
	a.busy = sized(a.busy, len(left))
	for l, capacity := range capacities {
		a.busy[l] = left[l] < capacity/tightOver
	}
	a.promised, a.slack = sized(a.promised, len(rates)), sized(a.slack, len(rates))
	promised, slack = a.promised, a.slack
	for _, bestEffort := range []bool{false, true} {
		for i, f := range a.net.Flows {
			if (f.Class == BestEffort) != bestEffort || rates[i] >= f.Reserved {
				continue
			}
			more := f.Reserved - rates[i]
			if bestEffort && a.flows[i].samples == 0 {
				more /= bestEffortPart
			}
			for _, l := range f.Links {
				more = min(more, left[l])
			}
			for _, l := range f.Links {
				left[l] -= more
			}
			promised[i] = more
		}
	}
	for i, f := range a.net.Flows {
		slack[i] = Unlimited - rates[i]
		for _, l := range f.Links {
			slack[i] = min(slack[i], unit.Rate(mulDiv(uint64(left[l]), uint64(rates[i])+1, sums[l])))
		}
	}
	return promised, slack
}

// rate is the claim in bits per second.
func (d *demand) rate() unit.Rate {
	return unit.Rate(min(max(d.claim, d.wants), float64(Unlimited)) + 0.5)
}
