package sim_test

import (
	"fmt"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// Packets that are sent back to back leave the narrow link of 100 Mbit/s with the time of one frame
// between them: 1,500 bytes take 120 us.
func Example() {
	network := sim.New(sim.Path{Hops: []link.Spec{{Rate: unit.Gbit}, {Rate: 100 * unit.Mbit}}}, 1)
	s := network.Send(probe.Uniform("example/train", 4, 1500-probe.Overhead, 0))
	fmt.Println("dispersions in ns", s.Dispersions())
	fmt.Printf("arrived at %.0f Mbit/s\n", s.ArrivalRate()/1e6)
	// Output:
	// dispersions in ns [120000 120000 120000]
	// arrived at 100 Mbit/s
}
