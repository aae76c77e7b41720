package compare_test

import (
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// Two senders whose narrow links have 200 and 500 Mbit/s, with a fifth of cross traffic. The paths are
// simulated; over real paths, package probe/session sends the trains.
func ExampleSmallBlocks() {
	hop := func(rate, cross unit.Rate) link.Spec {
		s := link.Spec{Rate: rate * unit.Mbit, Queue: link.Amount{Time: 10 * time.Second}}
		if cross > 0 {
			s.Cross = []link.Cross{{Load: cross * unit.Mbit}}
		}
		return s
	}
	network := sim.NewJoint(sim.Meeting{
		Branches: []sim.Path{
			{Hops: []link.Spec{hop(1000, 0), hop(200, 40), hop(1000, 200)}},
			{Hops: []link.Spec{hop(1600, 0), hop(500, 100), hop(2000, 400)}},
		},
		Shared: sim.Path{Hops: []link.Spec{hop(2000, 0)}, Noise: time.Microsecond, Skew: 5e-5},
	}, 1)
	var method compare.SmallBlocks
	var samples []probe.JointSample
	for {
		joint, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, network.Send(joint))
	}
	ratio := method.Estimate(samples).Ratio.Value
	fmt.Println("within 5 % of 2.5:", math.Abs(ratio/2.5-1) < 0.05)
	// Output: within 5 % of 2.5: true
}

// The pairs' ratios are put on one scale, the fastest sender first.
func ExampleRank() {
	twice := compare.Result{Ratio: probe.Estimate{Value: 2, Low: 1.98, High: 2.02}}
	ranked := compare.Rank(3, []compare.Pair{{A: 0, B: 1, Result: twice}, {A: 1, B: 2, Result: twice}})
	for _, r := range ranked {
		fmt.Printf("sender %d: %.2f\n", r.Sender, r.Relative.Value)
	}
	// Output:
	// sender 2: 1.00
	// sender 1: 0.50
	// sender 0: 0.25
}

// The method of the estimation seed counts the packets of the other sender between two packets of one
// sender. The packets arrive in the order of figure 3.6.
func ExampleCompare() {
	var s probe.JointSample
	var next [2]int
	for _, sender := range "babbabbaaa" {
		from := int(sender - 'a')
		s.Arrived = append(s.Arrived, probe.JointArrival{From: from, Number: next[from]})
		next[from]++
	}
	first, second := compare.ASND(&s, 0, 1), compare.ASND(&s, 1, 0)
	fmt.Println(first, second)
	fmt.Println("the second path is", compare.Compare(first, second), "times as fast")
	// Output:
	// [2 0 2] [2 2]
	// the second path is 2 times as fast
}
