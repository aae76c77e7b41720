package bench

import (
	"context"
	"time"

	"headgate.dev/headgate/internal/plot"
)

// Bench is one paper's experiment.
type Bench struct {
	Name  string // "groups"
	Title string
	// About is for the report: what is set up, what is counted, and how. Paragraphs
	// of Markdown.
	About string
	// Rows are the rows of the table, in its order and words.
	Rows  []Row
	Cases []Case
	// Subject heads the column of what is measured; "" is headgate.
	Subject string
	// Seed is that of the Draw which the bench was made with.
	Seed uint64
	// Tools are programs that the bench runs, and how each is asked for its version:
	// {"iperf3", "--version"}.
	Tools [][]string
	// Plots, if set, draws pictures of the claims, when all of them are measured.
	Plots func(claims []Claim) []plot.Plot
}

// Row is a row of the table in the issue that asked for the bench.
type Row struct {
	ID   string // "ramp-in"
	What string
}

// Case measures some claims together.
type Case struct {
	// Name is unique in its bench.
	Name   string
	Claims []Claim
	// Drawn says which values a Draw gave the case, in words: "limit 37.2Mbit, 12 ms
	// round-trip time". "" is a fixed case.
	Drawn string
	// Takes estimates how long one run of it takes.
	Takes func(quick bool) time.Duration
	// Alongside, if set, names a batch: neighbours of one batch run at the same
	// time, because they load the machine so little that they do not disturb each
	// other, or because it is a smoke run. "" is none.
	Alongside func(quick bool) string
	// Runs, if set, is how often a full bench measures the case at least: several times, if
	// the draw of its traffic decides much.
	Runs int
	// Run measures once. What it returns as error is why claims are missing.
	Run func(ctx context.Context, r *Run) error
}

// Options of a run of a bench.
type Options struct {
	// Quick makes a smoke run: every claim is measured, on few cases and shortly.
	Quick bool
	// Runs is how often each case is measured; 0 is once. All cases are measured
	// before the first is measured again, so that a bad quarter of an hour is spread
	// over all claims.
	Runs int
	// Only are prefixes of claim ids; a case runs if it has such a claim. None is
	// everything.
	Only []string
	// Patience is how long in all to wait for other programs to leave the machine
	// alone: before a case, and by measuring again what they disturbed.
	Patience time.Duration
	// Journal, if set, is a file that has each run of a case as soon as it is measured.
	// What it has already is not measured again: a bench that ended early goes on.
	Journal string
	// Environment, if set, is taken instead of this machine's.
	Environment *Environment
	// Progress, if set, is told what happens, a line each.
	Progress func(format string, args ...any)
}
