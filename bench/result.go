package bench

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/internal/plot"
)

// Result is the result of a bench.
type Result struct {
	Bench       string      `json:"bench"`
	Smoke       bool        `json:"smoke"`          // a smoke run, whose values are not results
	Only        []string    `json:"only,omitempty"` // Options.Only
	Seed        uint64      `json:"seed,omitempty"` // of random values: --seed reproduces them
	Runs        int         `json:"runs_per_case"`
	Seconds     float64     `json:"seconds"`
	Environment Environment `json:"environment"`
	Claims      []Claim     `json:"claims"`
	Sheets      []*Sheet    `json:"runs"`

	caseOf  map[string]string // by claim
	subject string
	plots   []plot.Plot
	rows    []Row
}

// Short returns the claims that missed their target, or were not measured.
func (r *Result) Short() (short []Claim) {
	for _, c := range r.Claims {
		if !c.OK {
			short = append(short, c)
		}
	}
	return short
}

// judge fills in the claims from the sheets.
func (r *Result) judge() {
	for i := range r.Claims {
		c := &r.Claims[i]
		var own Spread
		if c.Ours, own = r.value(c.ID, Ours); own.N > 1 {
			c.Least, c.Most = &own.Least, &own.Most
		}
		c.N = own.N
		for p := range c.Peer {
			var spread Spread
			if c.Peer[p], spread = r.value(c.ID, p); spread.N > 1 {
				if c.PeerSpread == nil {
					c.PeerSpread = map[string]Spread{}
				}
				c.PeerSpread[p] = spread
			}
			if c.Peer[p] == nil {
				c.Notes = append(c.Notes, fmt.Sprintf("%s: not measured: %s", p, r.why(c.ID, p)))
			}
		}
		if c.Ours == nil {
			c.Missing = r.why(c.ID, Ours)
		} else {
			c.OK = c.Target.Met(*c.Ours)
		}
		for _, s := range r.Sheets {
			took := taken{s.Others, s.Stolen, s.Stall, s.Starved}
			if _, measured := s.Values[c.ID]; measured && s.By == Ours && took.disturbed() {
				c.Notes = append(c.Notes, fmt.Sprintf("run %d: %v", s.Run+1, took))
			}
			if _, measured := s.Values[c.ID]; measured && s.By == Ours && s.Commit != "" {
				c.Notes = append(c.Notes, fmt.Sprintf("run %d: measured at commit %s", s.Run+1, s.Commit))
			}
			for _, n := range s.notes[c.ID] {
				if s.By != Ours {
					n = s.By + ": " + n
				}
				if !slices.Contains(c.Notes, n) {
					c.Notes = append(c.Notes, n)
				}
			}
		}
		slices.Sort(c.Notes)
	}
}

// value returns the median of the runs, and the range of all measurements.
func (r *Result) value(id, by string) (*float64, Spread) {
	var runs, all []float64
	for _, s := range r.Sheets {
		v, ok := s.Values[id]
		switch samples := s.Samples[id]; {
		case !ok || s.By != by:
			continue
		case len(samples) > 0:
			all = append(all, samples...)
		default:
			all = append(all, v)
		}
		runs = append(runs, v)
	}
	if len(runs) == 0 {
		return nil, Spread{}
	}
	m := Median(runs)
	return &m, Spread{len(all), slices.Min(all), slices.Max(all)}
}

// why returns the reason why a claim has no value.
func (r *Result) why(id, by string) string {
	reasons, ran := []string{}, false
	for _, s := range r.Sheets {
		if s.Case != r.caseOf[id] {
			continue
		}
		ran = true
		why := s.Missing
		if slices.Contains(s.unusable, id) {
			why = "the value is not a number"
		}
		if s.By == by && why != "" && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "; ")
	case ran && by != Ours && r.Smoke:
		return "only in the full benchmark"
	case ran:
		return "the case returned no value"
	}
	return "the case was not run"
}

// Median returns the median of at least one value.
func Median(values []float64) float64 {
	v := slices.Clone(values)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
