// Package probing is the bench "probe": estimators on paths with known properties, hundreds of
// simulated ones and the lab's on real kernels.
package probing

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "probe",
		Title: "Estimates of paths, against their true values",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Tools: [][]string{{"iperf3", "--version"}},
		Cases: slices.Concat([]bench.Case{tokenRateCase(d), hugeBucketCase(d)}, tokenRateLab(), []bench.Case{capacityCase(d)}, capacityLab(), whereCases(d), limiterCases(d), limiterLab(), availableCases(d), availableLab(d), harmCases(), slowCases(), creditsCases(d), compareCases(d), peerCases(d), []bench.Case{namedCase(d), adversarialCase(d), adversarialLab(d), tuneCase()}),
	}
}

const about = `Simulated paths are links of the lab's model in virtual time, drawn at random for each
seed from the ranges that the claims name; estimators were tuned on other paths. In the lab
` + "`headgate probe`" + ` runs between two namespaces over the emulator, whose links are the truth.

An error is relative to the truth. p90 is over all paths, or runs; a path without an
estimate counts as an error of 100 %. Where an answer says for how many bytes its rate was held,
it is judged for a transfer of as many: a limiter whose bucket outlasts them may count or not.`
