package capacity_test

import (
	"fmt"
	"os"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// A shaper of 50 Mbit/s does not hide the capacity of a link of 100 Mbit/s: the bursts fit into its
// bucket. The path is simulated; over a real path, package probe/session sends the trains.
func ExampleBursts() {
	network := sim.New(sim.Path{Hops: []link.Spec{
		{Rate: 100 * unit.Mbit, Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 10_000}},
	}}, 1)
	var method capacity.Bursts
	var samples []probe.Sample
	for {
		train, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, network.Send(train))
	}
	fmt.Printf("%.0f Mbit/s\n", method.Estimate(samples).Capacity.Value/1e6)
	// Output: 100 Mbit/s
}

// The samples are from a log of a real measurement: a link of 400 Mbit/s behind a shaper of 200 Mbit/s.
func ExampleBursts_Estimate() {
	file, err := os.Open("testdata/400Mbit.200Mbit.1600B.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	log, err := probe.ReadLog(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range probe.Directions {
		c := capacity.Bursts{}.Estimate(log.Samples[d]).Capacity
		fmt.Printf("%s: %.1f Gbit/s\n", d, c.Value/1e9)
	}
	// Output:
	// out: 0.4 Gbit/s
	// in: 0.4 Gbit/s
}
