package tokenrate_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// A shaper of 200 Mbit/s with a bucket of 100 kB, before a link of 1 Gbit/s. The path is simulated; over
// a real path, package probe/session sends the trains.
func ExampleLadder() {
	network := sim.New(sim.Path{Noise: 500 * time.Nanosecond, Hops: []link.Spec{{
		Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond},
		Bucket: &link.Bucket{Rate: 200 * unit.Mbit, Size: 100_000},
	}}}, 1)
	method := tokenrate.Ladder{Capacity: 1e9}
	var samples []probe.Sample
	for {
		train, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, network.Send(train))
	}
	r := method.Estimate(samples)
	fmt.Printf("token rate %.2f Gbit/s, bucket %.1f MB\n", r.Rate.Value/1e9, r.Bucket.Value/1e6)
	// Output: token rate 0.20 Gbit/s, bucket 0.1 MB
}

// Of packets of 1,500 bytes that arrive at 120 Mbit/s, three pass a shaper of 60 Mbit/s with a bucket of
// 3,000 bytes at once (equation 2.1 of the estimation seed).
func ExampleK() {
	fmt.Println(tokenrate.K(3000*8, 1500*8, 60e6, 120e6, 120e6))
	// Output: 3
}
