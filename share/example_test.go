package share_test

import (
	"fmt"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

const mbit = unit.Mbit

// A tenant with a guarantee of 60 Mbit/s has two groups, and shares a link of 100 Mbit/s with a
// backup. The tenant borrows what the backup leaves unused, and the backup gets its guarantee as
// soon as it has demand.
func ExampleAllocate() {
	names := []string{"tenant", "tenant/web", "tenant/db", "backup"}
	claims := []share.Claim{
		{Parent: -1, Guarantee: 60 * mbit, Ceiling: unit.MaxRate, Weight: 60},
		{Parent: 0, Guarantee: 40 * mbit, Ceiling: unit.MaxRate, Weight: 40, Demand: unit.MaxRate},
		{Parent: 0, Guarantee: 20 * mbit, Ceiling: unit.MaxRate, Weight: 20},
		{Parent: -1, Guarantee: 40 * mbit, Ceiling: unit.MaxRate, Weight: 40, Demand: 10 * mbit},
	}
	idle := share.Allocate(100*mbit, share.Proportional, claims)
	claims[3].Demand = unit.MaxRate
	busy := share.Allocate(100*mbit, share.Proportional, claims)
	for i, name := range names {
		fmt.Println(name, "gets", idle[i], "and then", busy[i])
	}
	// Output:
	// tenant gets 90Mbit and then 60Mbit
	// tenant/web gets 90Mbit and then 60Mbit
	// tenant/db gets 0bit and then 0bit
	// backup gets 10Mbit and then 40Mbit
}

// Spare bandwidth goes to the lowest priority number first, after all guarantees are met.
func ExampleAllocate_priority() {
	claims := []share.Claim{
		{Parent: -1, Guarantee: 20 * mbit, Ceiling: unit.MaxRate, Priority: 1, Demand: unit.MaxRate},
		{Parent: -1, Guarantee: 10 * mbit, Ceiling: unit.MaxRate, Priority: 0, Demand: 30 * mbit},
	}
	fmt.Println(share.Allocate(100*mbit, share.Priority, claims))
	// Output: [70Mbit 30Mbit]
}

// A ceiling is never exceeded, and bandwidth that no claim can use stays unused.
func ExampleAllocate_ceiling() {
	claims := []share.Claim{
		{Parent: -1, Guarantee: 10 * mbit, Ceiling: 20 * mbit, Weight: 1, Demand: unit.MaxRate},
		{Parent: -1, Guarantee: 10 * mbit, Ceiling: 30 * mbit, Weight: 1, Demand: unit.MaxRate},
	}
	fmt.Println(share.Allocate(100*mbit, share.Proportional, claims))
	// Output: [20Mbit 30Mbit]
}

// A long path over two links, and one claim on each link. The claim on the long path is guaranteed
// 20 Mbit/s.
func ExampleAllocateLinks() {
	links := []unit.Rate{100 * mbit, 60 * mbit}
	claim := func(guarantee unit.Rate, links ...int) share.Claim {
		return share.Claim{Parent: -1, Guarantee: guarantee, Ceiling: unit.MaxRate, Weight: 1, Demand: unit.MaxRate, Links: links}
	}
	fmt.Println(share.AllocateLinks(links, share.Proportional, []share.Claim{claim(20*mbit, 0, 1), claim(0, 0), claim(0, 1)}))
	// Output: [40Mbit 60Mbit 20Mbit]
}

// The algorithm of the Bandwidth-as-a-Service thesis: a group without traffic gives up one step at
// the end of each quantum, and another group borrows it.
func ExampleQuantum() {
	cfg, err := share.QuantumForRate(800*unit.Kbit, []unit.Rate{320 * unit.Kbit, 480 * unit.Kbit}, share.SeedQuantum)
	if err != nil {
		fmt.Println(err)
		return
	}
	q := share.NewQuantum(cfg)
	for quantum := 1; quantum <= 2; quantum++ {
		passed := 0
		for range 41 { // packets of 1,000 bytes in the first group
			if !q.Packet(0, 1000).Drop {
				passed++
			}
		}
		fmt.Println("quantum", quantum, "passed", passed, "packets")
		q.Tick()
	}
	// Output:
	// quantum 1 passed 40 packets
	// quantum 2 passed 41 packets
}

// QoS1 stops, and the bandwidth of its reservation goes first to QoS2, which offers more than its
// own. QoS1 has it back one cycle after it sends again.
func ExampleAQoS() {
	network := share.ReservedNetwork{
		Capacities: []unit.Rate{10 * mbit},
		Flows: []share.ReservedFlow{
			{Key: "telescope", Links: []int{0}, Reserved: 6 * mbit, Class: 1},
			{Key: "archive", Links: []int{0}, Reserved: 2 * mbit, Class: 2},
			{Key: "other", Links: []int{0}},
		},
	}
	scheme := &share.AQoS{}
	scheme.SetNetwork(network)
	for range 5 {
		scheme.Cycle([]unit.Rate{0, 7 * mbit, 20 * mbit})
	}
	fmt.Println(scheme.Cycle([]unit.Rate{0, 7 * mbit, 20 * mbit}))
	fmt.Println(scheme.Cycle([]unit.Rate{6 * mbit, 7 * mbit, 20 * mbit}))
	// Output:
	// [0bit 7Mbit 2.7Mbit]
	// [6Mbit 4Mbit 0bit]
}
