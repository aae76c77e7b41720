package available_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// Cross traffic of about 500 Mbit/s on a link of 1 Gbit/s. The path is simulated; over a real path,
// package probe/session sends the trains.
func ExampleHoldTrains() {
	network := sim.New(sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{
		Rate: unit.Gbit, Delay: time.Millisecond,
		Cross: []link.Cross{{Load: 500 * unit.Mbit, Sizes: []int{54, 590, 1514}}},
	}}}, 1)
	network.Record()
	method := available.HoldTrains{Capacity: 1e9}
	var samples []probe.Sample
	for {
		train, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, network.Send(train))
	}
	estimate, truth := method.Estimate(samples).Available.Value, float64(network.Realised())
	fmt.Println("within a tenth of what the cross traffic left:", math.Abs(estimate/truth-1) < 0.1)
	// Output: within a tenth of what the cross traffic left: true
}

// The samples are from a real measurement: a shaper of 300 Mbit/s with 100 Mbit/s of cross traffic.
func ExampleHoldTrains_Estimate() {
	file, err := os.Open("testdata/bucket.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	var samples []probe.Sample
	for lines := json.NewDecoder(file); lines.More(); {
		var s probe.Sample
		if err := lines.Decode(&s); err != nil {
			fmt.Println(err)
			return
		}
		samples = append(samples, s)
	}
	a := available.HoldTrains{Capacity: 1e9, TokenRate: 300e6}.Estimate(samples).Available
	fmt.Printf("%.1f Gbit/s\n", a.Value/1e9)
	// Output: 0.2 Gbit/s
}
