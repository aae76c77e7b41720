package bench

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/internal/plot"
)

// Run is one run of a case.
type Run struct {
	Quick bool
	// Few is set if claims were selected by name: then a smoke run measures everything about them.
	Few bool
	// N is the number of the run, from 0.
	N    int
	Case string

	drawn   string // Case.Drawn
	say     func(format string, args ...any)
	mu      *sync.Mutex
	sheets  []*Sheet
	plots   []plot.Plot
	taken   taken
	took    time.Duration
	failure string
}

// Say prints a progress message.
func (r *Run) Say(format string, args ...any) { r.say(r.Case+": "+format, args...) }

// Plot keeps a plot for the report. Of plots with the same file name the first is used.
func (r *Run) Plot(p plot.Plot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plots = append(r.plots, p)
}

// Sheet returns the results of one program: Headgate, or a peer.
func (r *Run) Sheet(by string) *Sheet {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sheets {
		if s.By == by {
			return s
		}
	}
	s := &Sheet{mu: r.mu, Case: r.Case, Run: r.N, By: by, Values: map[string]float64{}}
	r.sheets = append(r.sheets, s)
	return s
}

// Sheet has the results of one program in one run of a case.
type Sheet struct {
	Case string `json:"case"`
	Run  int    `json:"run"`
	By   string `json:"by"`
	// Commit is set if the run is of another commit than Environment.Commit.
	Commit string `json:"commit,omitempty"`
	// Values are by claim. Samples are those whose median is the value, if one run measures several
	// times.
	Values  map[string]float64   `json:"values"`
	Samples map[string][]float64 `json:"samples,omitempty"`
	// Others is how much of one processor other programs used during the run, Stolen the steal time
	// while the machine had work, and Stall the longest time in seconds for which no thread ran.
	Others float64 `json:"others_cpu"`
	Stolen float64 `json:"stolen_cpu"`
	Stall  float64 `json:"stall_s"`
	// Starved is the longest time for which an ordinary thread waited for a processor.
	Starved float64 `json:"starved_s"`
	// Missing is the reason why values are missing.
	Missing string `json:"missing,omitempty"`
	// Data has the raw data behind the values.
	Data map[string]any `json:"data,omitempty"`

	notes    map[string][]string // by claim
	unusable []string            // claims whose value is not a number
	mu       *sync.Mutex
}

// Set sets the value of a claim. A value that is not a number counts as not measured.
func (s *Sheet) Set(id string, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		s.unusable = append(s.unusable, id)
		return
	}
	s.Values[id] = v
}

// SetAll sets the value of a claim that one run measures several times: the median. One value that is
// not a number invalidates all.
func (s *Sheet) SetAll(id string, values []float64) {
	if len(values) == 0 {
		return
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		s.Set(id, sum)
		return
	}
	s.Set(id, Median(values))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Samples == nil {
		s.Samples = map[string][]float64{}
	}
	s.Samples[id] = slices.Clone(values)
}

// Note adds a note to a claim that its reader needs.
func (s *Sheet) Note(id, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes == nil {
		s.notes = map[string][]string{}
	}
	s.notes[id] = append(s.notes[id], fmt.Sprintf(format, args...))
}

// Fail sets the reason why values are missing.
func (s *Sheet) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err.Error())
}

func (s *Sheet) fail(why string) {
	if s.Missing != "" {
		why = s.Missing + "; " + why
	}
	s.Missing = why
}

// Keep adds raw data to the result.
func (s *Sheet) Keep(key string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Data == nil {
		s.Data = map[string]any{}
	}
	s.Data[key] = data
}
