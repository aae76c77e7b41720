package sharetest

import (
	"math/rand/v2"
	"slices"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Method is a scheme with the queues that it needs at the bottleneck.
type Method struct {
	Name string
	// New returns a scheme without state.
	New func() share.Scheme
	// Classes lists the classes of each queue; nil is a FIFO.
	Classes [][]int
}

// The methods of the thesis (reservations, section 4.2). The queues are those of table 5.1. The
// hybrid's text has one queue for all QoS flows.
var (
	AQoS         = Method{"adaptive (thesis)", func() share.Scheme { return &share.AQoS{} }, nil}
	StaticMeters = Method{"static meters", func() share.Scheme { return &share.StaticMeters{} }, nil}
	DiffServ     = Method{"queues", func() share.Scheme { return &share.DiffServ{} }, [][]int{{1, 2}, {3, 4}, {share.BestEffort}}}
	Hybrid       = Method{"hybrid", func() share.Scheme { return &share.Hybrid{} }, [][]int{{1, 2, 3, 4}, {share.BestEffort}}}
	Methods      = []Method{AQoS, StaticMeters, DiffServ, Hybrid}
)

// Cycle is what happened in one cycle of a run, by flow.
type Cycle struct{ Offered, Limits, Delivered []unit.Rate }

// Run runs a method over the fluid model of a network whose queues are at the link bottleneck.
// Each of the offered rates, by interval and flow, is kept for cycles cycles. A limit that
// follows from the rates of a cycle is in force in the next one.
func Run(m Method, n share.ReservedNetwork, bottleneck int, offered [][]unit.Rate, cycles int) []Cycle {
	var queues map[int][]share.Queue
	if m.Classes != nil {
		queues = map[int][]share.Queue{bottleneck: share.QueuesFor(n, bottleneck, m.Classes...)}
	}
	scheme := m.New()
	limits := scheme.SetNetwork(n)
	var out []Cycle
	for _, rates := range offered {
		for range cycles {
			out = append(out, Cycle{rates, limits, share.Deliver(n, queues, rates, limits)})
			limits = scheme.Cycle(rates)
		}
	}
	return out
}

// Noisy returns the rates of each cycle, if each of the offered rates, by interval and flow, is
// kept for cycles cycles but varies: by a normal distribution of the relative deviation, never
// below 0. The senders really vary; the measurement is exact. The same seed gives the same
// rates.
func Noisy(offered [][]unit.Rate, cycles int, deviation float64, seed uint64) [][]unit.Rate {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out [][]unit.Rate
	for _, rates := range offered {
		for range cycles {
			noisy := make([]unit.Rate, len(rates))
			for i, r := range rates {
				noisy[i] = unit.Rate(max(0, float64(r)*(1+deviation*rng.NormFloat64())))
			}
			out = append(out, noisy)
		}
	}
	return out
}

// Mean returns the mean rates that the QoS flows and all flows got together, in bit/s.
func Mean(n share.ReservedNetwork, run []Cycle) (qos, total float64) {
	for _, c := range run {
		for i, rate := range c.Delivered {
			total += float64(rate)
			if n.Flows[i].Class != share.BestEffort {
				qos += float64(rate)
			}
		}
	}
	return qos / float64(len(run)), total / float64(len(run))
}

// Ideal returns the run of an oracle that allocates in each cycle by the rates offered in it
// (share.Ideal).
func Ideal(n share.ReservedNetwork, offered [][]unit.Rate, cycles int) []Cycle {
	var out []Cycle
	for _, rates := range offered {
		ideal := share.Ideal(n, rates)
		for range cycles {
			out = append(out, Cycle{rates, ideal, ideal})
		}
	}
	return out
}

// FalseSeizures counts the seizures of a run that were handed back: a limit of a QoS flow falls,
// and in one of the 3 cycles after that it is at least what it was before. A flow that really
// falls and rises in that time counts as well, so the number has a meaning for flows whose rates
// are constant but for noise.
func FalseSeizures(n share.ReservedNetwork, run []Cycle) (count int) {
	for i, f := range n.Flows {
		if f.Class == share.BestEffort {
			continue
		}
		for k := 1; k < len(run); k++ {
			before := run[k-1].Limits[i]
			if run[k].Limits[i] >= before {
				continue
			}
			after := run[k+1 : min(k+4, len(run))]
			if slices.ContainsFunc(after, func(c Cycle) bool { return c.Limits[i] >= before }) {
				count++
			}
		}
	}
	return count
}
