package bench

import (
	"context"
	"strings"
	"time"

	"headgate.dev/headgate/internal/plot"
)

// Bench is one benchmark, such as one paper's experiment.
type Bench struct {
	Name  string // "groups"
	Title string
	// About is for the report: the setup, what is counted, and how. Paragraphs of Markdown.
	About string
	// Rows are the rows of the table of targets, in its order and words.
	Rows  []Row
	Cases []Case
	// Subject is the heading of the measured values; "" is headgate.
	Subject string
	// Seed is that of the Draw with which the bench was created.
	Seed uint64
	// Tools are programs that the bench runs, and the argument that prints the version of each:
	// {"iperf3", "--version"}.
	Tools [][]string
	// Plots, if set, draws plots from all claims, after the measurements.
	Plots func(claims []Claim) []plot.Plot
}

// LeftOut returns the paragraph of About that begins with what is left out, without its markup; "" if there is none.
func (b Bench) LeftOut() string {
	for p := range strings.SplitSeq(b.About, "\n\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(p), "**Left out**"); ok {
			return "left out" + strings.NewReplacer("\n", " ", "`", "", "**", "").Replace(rest)
		}
	}
	return ""
}

// Row is a row of the table of targets.
type Row struct {
	ID   string // "ramp-in"
	What string
}

// Case measures some claims together.
type Case struct {
	// Name is unique in its bench.
	Name   string
	Claims []Claim
	// Drawn describes the random values of the case: "limit 37.2Mbit, 12 ms round-trip time". "" is a
	// fixed case.
	Drawn string
	// Takes estimates the duration of one run of it.
	Takes func(quick bool) time.Duration
	// Alongside, if set, returns the name of a batch. Neighbouring cases of one batch run in parallel,
	// because they load the machine so little that they do not disturb each other, or because it is a
	// smoke run. "" is none.
	Alongside func(quick bool) string
	// Runs, if set, is the minimum number of runs in a full benchmark: several, if random traffic has
	// a large effect.
	Runs int
	// Run measures once. Its error is the reason why claims are missing.
	Run func(ctx context.Context, r *Run) error
}

// Options of a run of a bench.
type Options struct {
	// Quick is a smoke run: every claim is measured, with few and short cases.
	Quick bool
	// Runs is how often each case is measured; 0 is once. All cases are measured before the first is
	// measured again, so that a period of disturbance affects all claims equally.
	Runs int
	// Only are prefixes of claim ids; a case runs if it has such a claim. Empty means all.
	Only []string
	// Patience is the total time to wait for an idle machine before a case, and to repeat disturbed
	// measurements.
	Patience time.Duration
	// Journal, if set, is a file to which each run of a case is appended. Runs that it has already are
	// not repeated, so that an interrupted bench can be resumed.
	Journal string
	// Environment, if set, replaces this machine's.
	Environment *Environment
	// Progress, if set, is called with each progress message.
	Progress func(format string, args ...any)
}
