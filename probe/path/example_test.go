package path_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// All properties of a path in one answer: a shaper of 300 Mbit/s before a link of 1 Gbit/s. The path is
// simulated; over a real path, package probe/session sends the trains.
func ExampleMethod() {
	network := sim.New(sim.Path{Noise: 700 * time.Nanosecond, Work: 250 * time.Nanosecond, Hops: []link.Spec{{
		Rate: unit.Gbit, Delay: 2 * time.Millisecond, Queue: link.Amount{Time: 10 * time.Second},
		Bucket: &link.Bucket{Rate: 300 * unit.Mbit, Size: 50_000},
	}}}, 3)
	method := path.Method{Parts: path.AllParts}
	var samples []probe.Sample
	for {
		train, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, network.Send(train))
	}
	a := method.Estimate(samples)
	fmt.Printf("capacity %.1f Gbit/s\n", a.Capacity.Value/1e9)
	fmt.Printf("token rate %.2f Gbit/s\n", a.TokenRate.Rate.Value/1e9)
	fmt.Printf("available %.1f Gbit/s\n", a.Available.Available.Value/1e9)
	fmt.Println("limiter", a.Limiter.Class)
	fmt.Println("within the budget:", a.Bytes <= path.Budget)
	// Output:
	// capacity 1.0 Gbit/s
	// token rate 0.30 Gbit/s
	// available 0.3 Gbit/s
	// limiter tbf
	// within the budget: true
}
