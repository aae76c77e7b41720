package lab

import (
	"slices"
	"strings"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/switching"
	"headgate.dev/headgate/internal/plot"
)

// Bench returns the bench of the lab, with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	survey := switching.Bench(d)
	return bench.Bench{
		Name:  "lab",
		Title: "Emulated links, against their definitions",
		About: about + "\n\n# The switch survey\n\n" + survey.About,
		Rows:  rows,
		Seed:  d.Seed(),
		Tools: survey.Tools,
		Plots: func(claims []bench.Claim) []plot.Plot {
			if !slices.ContainsFunc(claims, func(c bench.Claim) bool { return strings.HasPrefix(c.ID, "survey/") }) {
				return plots(claims)
			}
			return append(plots(claims), survey.Plots(claims)...)
		},
		Cases: slices.Concat(rateCases(d), delayCases(d), lossCases(d), crossCases(d), costCases(), tcpCases(), netemCases(), queueCases(d), setupCases(), survey.Cases),
	}
}

const about = `Every link here is ` + "`headgate lab`" + `'s emulator: two TAP devices and a thread for
each direction that passes every segment, also those inside of super-packets, through
a model in virtual time. Traffic is the kernel's own TCP and UDP.

Values are measured at the receiver. Queues and limiters are checked by the release log
of a link: a second implementation of each definition, without the model's code, checks
every packet.`
