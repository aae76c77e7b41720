package simtest

import (
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// UnboundedQueue is the length of a queue that loses no packets (2.5.1).
var UnboundedQueue = link.Amount{Time: 10 * time.Second}

// Pareto returns cross traffic with the seed's shape of 1.9 and packets of 1500 bytes.
func Pareto(load float64) []link.Cross {
	return []link.Cross{{Load: unit.Rate(load), Model: link.Pareto, Sizes: []int{1500}}}
}

// Testbed returns the path of figure 2.17: a link of 1 Gbit/s, and a shaper before or
// after it.
func Testbed(rate unit.Rate, bucket unit.Bytes, after bool, cross float64) sim.Path {
	p := sim.Path{Noise: time.Microsecond, Skew: 2e-5}
	for i, c := range []unit.Rate{10, 1, 10} {
		hop := link.Spec{Rate: c * unit.Gbit, Delay: 100 * time.Microsecond, Queue: UnboundedQueue}
		carries := hop.Rate
		if after && i == 2 || !after && i == 0 {
			hop.Bucket = &link.Bucket{Rate: rate, Size: bucket}
			carries = rate
		}
		if cross > 0 {
			hop.Cross = Pareto(cross * float64(carries))
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}
