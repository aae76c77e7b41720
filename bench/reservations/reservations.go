// Package reservations is the bench "reservations": bandwidth that is promised across a network of real Open vSwitch bridges or of Linux routers,
// by the commands that a user types, beside the paper's algorithm, static meters and queues in the same run.
//
//	scenarios.go  the paper's four scenarios on its network; routers are the same on Linux routers
//	exact.go      limits against what passes, and loss inside them
//	return.go     a flow that sleeps and wakes
//	noise.go      false seizures, and real falls
//	tcp.go        TCP beside greedy UDP
//	admission.go  a week's calendar, and many programs at the same time
//	optimal.go    what is accepted, against oracles
//	many.go       1,000 switches in memory (crowd.go)
//	failure.go    links that die
//	leader.go     a leader that is killed
//
// net.go has the networks, and watch.go reads limits.
package reservations

import (
	"slices"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/share/sharetest"
	"headgate.dev/headgate/unit"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "reservations",
		Title: "Reservations across a network",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Plots: plots,
		Tools: [][]string{{"ovs-vswitchd", "--version"}, {"tc", "-V"}},
		Cases: slices.Concat(scenarioCases(d), routerCases(d), oneSmoke(exactCases(d), returnCases(), noiseCases(d), tcpCases()), admissionCases(), optimalCases(d), crowdCases(), failureCases(), leaderCases()),
	}
}

const about = `**Left out**: hardware switches, links above 500 Mbit/s, layer-2 circuits and IPv6 (the tests have them), several paths for one
reservation, cycles of another length than 1 s, reservations whose hosts have agents at another controller than the leader, OSCARS, and B4, SWAN and BwE, which
cannot be had. Of the paper's tables 4.2 and 4.3 (30 and 40 %) the text is lost: their waveforms are ours, of the same character and within the sums of
table 5.1. On routers and with TCP a random trial has 10 intervals, and at 100 Mbit/s 5, and not the 30 of the one with UDP at 5 Mbit/s. At 100 Mbit/s the lines of hosts are as fast as the machine. A smoke run (--quick)
has few cases of each row, shorter intervals, and small networks in memory.

The network is the paper's: six Open vSwitch bridges with the datapath in user space, or six Linux routers with agents in their place, five senders and
five receivers, and one bottleneck. Each method has a network, a controller (` + "`headgate controller`" + `) and switches of its own; at 5 Mbit/s all methods
of a case run at the same time, and at 100 Mbit/s one after the other; there only queues are measured beside Headgate. In the cases "varying" the rates of senders vary by 7 % from second to second: the paper's senders varied too, by how much it does not say, and 7 %
is what its numbers need in the fluid model of the package share. Reservations are made by ` + "`headgate reserve create`" + `. All seconds from the first one on
count. Rates are of layer 2, at the receivers.

**The ideal** is what an oracle gives each flow that knows what all offer in each interval: exact priority sharing of the links. **adaptive (thesis)** is
the paper's algorithm, **static meters** hold each flow to its reservation, **queues** are HTB with the minimum rates of table 5.1 and no meters, and
**hybrid** is static meters for what is reserved beside queues. TCP is CUBIC, and the best-effort flow is UDP in all of them.

The rows admission, cycle and failure/thousand have switches in memory, in a child process; the controller is the real one, and programs ask it over
HTTPS. The row optimal calls the package that decides, without a service.`

// oneSmoke makes cases with a network each one batch of a smoke run.
func oneSmoke(cases ...[]bench.Case) []bench.Case {
	all := slices.Concat(cases...)
	for i := range all {
		all[i].Alongside = func(quick bool) string { return bench.Pick(quick, "smoke", "") }
	}
	return all
}

// routerCases are the scenarios on Linux routers.
func routerCases(d *bench.Draw) (all []bench.Case) {
	for _, p := range []traffic.Protocol{traffic.UDP, traffic.TCP} {
		for _, factor := range []unit.Rate{slow, fast} {
			for _, random := range []bool{false, true} {
				for _, table := range sharetest.Scenarios {
					s := scenario{row: "routers", table: table, random: random, factor: factor, protocol: p, seed: d.Seed()}
					all = append(all, s.benchCase())
				}
			}
		}
	}
	return all
}
