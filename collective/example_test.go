package collective_test

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"headgate.dev/headgate/collective"
)

// Two connections send at 30 and 10 Mbit/s, without congestion. When one of them loses a packet, both are
// capped in the proportion that was learned. On a real host, package collective/sockops reads and caps the
// connections.
func ExampleControl() {
	const rtt = 10 * time.Millisecond
	perRound := map[collective.ID]int{1: 37_500, 2: 12_500} // bytes acknowledged in each round trip
	var set collective.Control
	observe := func(id collective.ID, round int, events collective.Event) {
		set.Observe(id, collective.Reading{
			At: time.Duration(round) * rtt, RTT: rtt, Newest: rtt, Acked: uint64(round * perRound[id]), Events: events,
		})
	}
	for round := range 500 {
		observe(1, round, 0)
		observe(2, round, 0)
	}
	for id := collective.ID(1); id <= 2; id++ {
		rate, known := set.LearnedRate(id)
		fmt.Printf("learned %.0f Mbit/s %v\n", float64(rate)/1e6, known)
	}
	fmt.Println("controlled:", set.Controlling())

	observe(1, 500, collective.FastRetransmit)
	observe(2, 500, 0)
	caps := maps.Collect(set.Caps(500 * rtt))
	fmt.Println("controlled:", set.Controlling())
	fmt.Printf("paced at %.1f to 1\n", float64(caps[1].Rate)/float64(caps[2].Rate))
	// Output:
	// learned 30 Mbit/s true
	// learned 10 Mbit/s true
	// controlled: false
	// controlled: true
	// paced at 3.0 to 1
}

// A policy selects the connections of a set, and may configure their weights.
func ExamplePolicy() {
	p := collective.Policy{Name: "db", Rules: []collective.Rule{
		{Remote: netip.MustParsePrefix("10.0.0.0/8"), RemotePort: collective.Ports{From: 5432, To: 5432}, Weight: 4},
		{Remote: netip.MustParsePrefix("10.0.0.0/8"), Weight: 1},
	}}
	local := netip.MustParseAddrPort("10.0.0.1:40000")
	for _, remote := range []string{"10.0.0.2:5432", "10.0.0.2:22", "192.0.2.1:22"} {
		to := netip.MustParseAddrPort(remote)
		fmt.Println(remote, p.Matches(local, to), p.Weight(local, to))
	}
	// Output:
	// 10.0.0.2:5432 true 4
	// 10.0.0.2:22 true 1
	// 192.0.2.1:22 false 0
}
