// Package collective is the bench "collective": plain TCP, the paper's method and Headgate's compared
// with each other, on real TCP. The paper is in docs/seeds.md.
package collective

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "collective",
		Title: "An application's connections in proportion, under congestion",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Cases: slices.Concat(seedCases(d), bothCases(d), restartCases(), twoCases(), []bench.Case{foundCase(d)}, fastCases(), floorCases(d), []bench.Case{calmCase()}, unfairCases(), costCases()),
	}
}

const about = `The network is that of the paper (docs/seeds.md). Where the paper has no value: 10 Mbit/s links, 10 ms between the
two routers, one FIFO a port with RED per code point on its average, with a limit of twice L_max of
AF31; AF11 is treated as AF21. Plain TCP, the paper's method and Headgate's each have their own
network, in parallel and with the same arrivals.

Ratios are of the rates in the congested minute, compared with the load offered from the
beginning of the run to the end of that minute. The load of the 25 s without congestion, from which
the proportion is learned, is a random sample of that: the two differ by 4 % on average.
Retransmissions and variation are in the same minute. The recovery of a database is its rate
from 5 to 15 s after the minute. Variation is the standard deviation of DB1's rate over
half-seconds, relative to its mean.

In the rows floor, parts and resent four members need 84 % of a link, at 4:2:1:1, and every second counts from the one in which rivals begin. Of the 3,240
cases that the properties give, 72 are drawn, in which every value of each property is equally frequent; half of the members go on with what they need, the others
take all they get, and their congestion control is drawn as well. A queue has 16 packets at the least. "plain TCP again" is how much two runs
of the same differ. Left out: several members behind different bottlenecks, ECN, wireless links, and rates above 250 Mbit/s.

In the rows restart and two there is one queue of one bandwidth-delay product, droptail, and rivals have CUBIC. An upgrade is the same program, stopped and started. The pool
asks for 64 KiB over each connection, as often as makes 42 % of the link, and waits for none of its requests.

The five greedy members are counted from 5 s on, with 20 competing flows from 15 s on. Processor
time is that of the daemon, which prints nothing during the measurement, and that of the eBPF programs by the
kernel's statistics.`
