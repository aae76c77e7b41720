// Package collective is the bench "collective": plain TCP, the paper's method and Headgate's compared
// with each other, on real TCP. The paper is in docs/seeds.md.
package collective

import (
	"slices"

	"headgate/bench"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "collective",
		Title: "An application's connections in proportion, under congestion",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Cases: slices.Concat(seedCases(d), bothCases(d), fastCases(), []bench.Case{calmCase()}, unfairCases(), costCases()),
	}
}

const about = `The seed's network, fixed where it is silent: 10 Mbit/s links, 10 ms between the two routers,
one FIFO a port with RED per code point on its average, with room for twice L_max of AF31;
AF11 is treated as AF21. Plain TCP, the seed's cycle and ours each have a network of their
own, at the same time and with the same arrivals.

Ratios are of what was carried in the congested minute, against what was offered from the
beginning to the end of it. Of the 25 s of calm in which it can be learnt that is a draw: the
two differ by 4 % in the mean. Sent again and variation are in the same minute; a database has
recovered by what it gets from 5 to 15 s after it. Variation is the standard deviation of
DB1's rate over half-seconds, of its mean.

The five greedy members are counted from 5 s on, beside 20 rivals from 15 s on. Processor
time is the daemon's, which prints nothing meanwhile, and what the kernel says of the eBPF
programs.`
