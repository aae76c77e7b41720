package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/internal/awake"
)

// Run measures according to the options. If a case fails its claims are missing, and the next case
// runs; Run returns an error only if nothing can be measured. When ctx ends, Run stops and returns
// what it has measured.
func (b Bench) Run(ctx context.Context, o Options) (*Result, error) {
	chosen, err := b.choose(o.Only)
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	began := time.Now()
	r := &Result{
		Bench: b.Name, Smoke: o.Quick, Only: o.Only, Seed: b.Seed,
		Claims: []Claim{}, Sheets: []*Sheet{}, caseOf: map[string]string{}, rows: b.Rows, subject: cmp.Or(b.Subject, Ours),
	}
	if o.Environment != nil {
		r.Environment = *o.Environment
	} else {
		r.Environment = ThisMachine()
	}
	if len(b.Tools) > 0 {
		r.Environment.Tools = versions(b.Tools)
	}
	r.declare(chosen)
	stop, err := awake.Start()
	if err != nil {
		return nil, err
	}
	defer stop()
	var kept *journal
	if o.Journal != "" {
		if kept, err = openJournal(o.Journal, journalHead{b.Name, b.Seed, o.Quick, r.Environment.Commit}); err != nil {
			return nil, err
		}
	}
	total := 0
	for _, c := range chosen {
		total += c.runs(o)
		r.Runs = max(r.Runs, c.runs(o))
	}
	w := &worker{options: o, result: r, total: total, patience: &patience{left: o.Patience}, journal: kept}
	for n := range r.Runs {
		again := slices.DeleteFunc(slices.Clone(chosen), func(c Case) bool { return n >= c.runs(o) })
		for _, batch := range batches(again, o.Quick) {
			w.batch(ctx, batch, n)
		}
	}
	if r.Seconds, err = kept.end(time.Since(began).Seconds()); err != nil {
		o.Progress("cannot close the journal: %v", err)
	}
	r.judge()
	if b.Plots != nil {
		r.plots = append(r.plots, b.Plots(r.Claims)...)
	}
	return r, nil
}

// Declared returns the claims that the prefixes select, without measuring.
func (b Bench) Declared(only []string) ([]Claim, error) {
	chosen, err := b.choose(only)
	r := Result{Only: only, caseOf: map[string]string{}, rows: b.Rows}
	r.declare(chosen)
	return r.Claims, err
}

// declare adds the selected claims, in the order of the rows.
func (r *Result) declare(cases []Case) {
	for _, c := range cases {
		for _, claim := range c.Claims {
			if wanted(r.Only, claim.ID) {
				claim = claim.clone()
				claim.Drawn = c.Drawn
				r.Claims = append(r.Claims, claim)
				r.caseOf[claim.ID] = c.Name
			}
		}
	}
	slices.SortStableFunc(r.Claims, func(x, y Claim) int { return cmp.Compare(r.place(x), r.place(y)) })
}

// place returns the index of the claim's row.
func (r *Result) place(c Claim) int {
	row, _, _ := strings.Cut(c.ID, "/")
	return slices.IndexFunc(r.rows, func(have Row) bool { return have.ID == row })
}

// choose returns the cases with a selected claim, or an error for a prefix without a claim.
func (b Bench) choose(only []string) ([]Case, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	var out []Case
	for _, c := range b.Cases {
		for _, claim := range c.Claims {
			if wanted(only, claim.ID) {
				out = append(out, c)
				break
			}
		}
	}
	for _, o := range only {
		if !b.has(o) {
			return nil, fmt.Errorf("%w %q in the bench %s: run \"headgate bench %s --list\" to see them", ErrUnknown, o, b.Name, b.Name)
		}
	}
	return out, nil
}

// ErrUnknown is an unknown claim.
var ErrUnknown = errors.New("unknown claim")

func (b Bench) has(prefix string) bool {
	for _, c := range b.Cases {
		for _, claim := range c.Claims {
			if wanted([]string{prefix}, claim.ID) {
				return true
			}
		}
	}
	return false
}

// check returns an error for invalid declarations of a bench.
func (b Bench) check() error {
	seen := map[string]bool{}
	rows := map[string]bool{}
	for _, r := range b.Rows {
		rows[r.ID] = true
	}
	for _, c := range b.Cases {
		for _, claim := range c.Claims {
			row, _, _ := strings.Cut(claim.ID, "/")
			switch {
			case seen[claim.ID]:
				return fmt.Errorf("bench %s declares the claim %s twice", b.Name, claim.ID)
			case !rows[row]:
				return fmt.Errorf("bench %s declares the claim %s, but there is no row %s", b.Name, claim.ID, row)
			}
			seen[claim.ID] = true
		}
	}
	return nil
}

// wanted reports whether id is selected, or is below a selected one.
func wanted(only []string, id string) bool {
	if len(only) == 0 {
		return true
	}
	for _, o := range only {
		if id == o || strings.HasPrefix(id, strings.TrimSuffix(o, "/")+"/") {
			return true
		}
	}
	return false
}

// batches joins neighbouring cases that run in parallel.
func batches(cases []Case, quick bool) (out [][]Case) {
	last := ""
	for _, c := range cases {
		batch := ""
		if c.Alongside != nil {
			batch = c.Alongside(quick)
		}
		if batch != "" && batch == last {
			out[len(out)-1] = append(out[len(out)-1], c)
		} else {
			out = append(out, []Case{c})
		}
		last = batch
	}
	return out
}

func (c Case) takes(quick bool) time.Duration {
	if c.Takes == nil {
		return 0
	}
	return c.Takes(quick)
}

// runs returns how often the case is measured.
func (c Case) runs(o Options) int {
	n := max(o.Runs, 1)
	if !o.Quick {
		n = max(n, c.Runs)
	}
	return n
}

// Takes estimates the duration of the selected cases.
func (b Bench) Takes(o Options) (sum time.Duration) {
	chosen, err := b.choose(o.Only)
	if err != nil {
		return 0
	}
	for _, batch := range batches(chosen, o.Quick) {
		var longest time.Duration
		for _, c := range batch {
			longest = max(longest, time.Duration(c.runs(o))*c.takes(o.Quick))
		}
		sum += longest
	}
	return sum.Round(time.Second)
}

func (c Claim) clone() Claim {
	peers := make(map[string]*float64, len(c.Peer))
	for p := range c.Peer {
		peers[p] = nil
	}
	c.Peer = peers
	c.Notes = append([]string(nil), c.Notes...)
	return c
}
