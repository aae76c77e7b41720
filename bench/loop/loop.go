// Package loop is the bench "loop": the parts of Headgate together. A network of real Open vSwitch bridges redirects connections of programs that know
// nothing of it into relay agents, as an operator sets it up.
//
//	redirect.go  what redirection costs a connection, and what it leaves
//	many.go      thousands of connections that the controller decides about
//	direct.go    agents and controllers that are killed
//	budget.go    a relay inside a reservation
//	measured.go  a link that gives less than its port says
//	proportion.go  a collective set inside a reservation
//	whole.go     demo --network
//	journey.go   docs/tour.md
//
// net.go has the network, and echo.go the programs at both ends.
package loop

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "loop",
		Title: "The network redirects, measures, reserves, divides and carries",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Tools: [][]string{{"ovs-vswitchd", "--version"}},
		Cases: slices.Concat(redirectCases(), manyCases(), directCases(), measuredCases(), budgetCases(), proportionCases(), wholeCases(d.Seed()), journeyCases()),
	}
}

const about = `**Left out**: hardware switches, more than two paths and two agents, IPv6 (the tests have it), several controllers, and in journey the time to
read. In many the connections that are not redirected stay in one switch: Open vSwitch in user space, all four switches in one thread, carries no more than 2,000
new connections a second through three of them, and no others beside. A smoke run (--quick) opens fewer connections.

The network is that of the relay's thesis: two edge switches, two core switches, two agents.

    client ─┐                ┌─ c1 ─┐                ┌─ server
            ├── s1 ──────────┤      ├────────── s2 ──┤
    near ───┘                └─ c2 ─┘                └─ far`

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "redirect", What: "relay seed's network (two edge switches, two core switches, two agents), real OVS: client and server each see the other's address and port; first byte <= direct + 1 controller round trip (<= 10 ms here); throughput >= 95 % of relay's explicit way; 0 entries left after close"},
	{ID: "many", What: "2,000 new connections/s through rules, 10 % redirected: others +<= 1 ms first packet; nothing refused; controller <= 0.5 core"},
	{ID: "direct", What: "near agent killed, far agent killed, controller killed, during SYN and during transfer: new connections direct <= 1 s; standing ones RST or go on, none hangs > 3 s"},
	{ID: "budget", What: "relay of 16 streams in a reservation of 30 Mbit/s beside 20 greedy TCP flows: within 2 % of what both were promised; retransmissions of others unchanged"},
	{ID: "measured", What: "a provider's limiter of 60 % of the port's speed inside the path: found by the schedule, proposed, applied; then reservations within it hold >= 99 %, where unaware ones got < 80 %"},
	{ID: "proportion", What: "an application's set of 4:2:1 inside a reservation that shrinks: within 5 %"},
	{ID: "whole", What: "demo --network ten times, random seeds: every promise kept, all clean afterwards"},
	{ID: "journey", What: "a new user, from clone to a reserved, relayed transfer on one's own lab file, by the docs alone: <= 15 min, every command of the docs run by a test"},
}
