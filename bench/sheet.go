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
	// Few is said if the claims were asked for by name: whoever wants few may want all that
	// is behind them.
	Few bool
	// N is the number of the run, from 0.
	N    int
	Case string

	say     func(format string, args ...any)
	mu      *sync.Mutex
	sheets  []*Sheet
	plots   []plot.Plot
	taken   taken
	took    time.Duration
	failure string
}

// Say tells the user what is going on.
func (r *Run) Say(format string, args ...any) { r.say(r.Case+": "+format, args...) }

// Plot keeps a plot for the report. Of plots with the same file name the first
// run's is drawn.
func (r *Run) Plot(p plot.Plot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plots = append(r.plots, p)
}

// Sheet is the results of one thing that is measured: ours, or a peer's.
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

// Sheet is what one run of a case found for one thing that is measured.
type Sheet struct {
	Case string `json:"case"`
	Run  int    `json:"run"`
	By   string `json:"by"`
	// Values are by claim; Samples are what they are the medians of, where one run
	// measures several times.
	Values  map[string]float64   `json:"values"`
	Samples map[string][]float64 `json:"samples,omitempty"`
	// Others is how much of one processor other programs used meanwhile, Stolen how
	// much the hypervisor kept back while the machine had work, and Stall the longest
	// time in seconds for which nothing ran.
	Others float64 `json:"others_cpu"`
	Stolen float64 `json:"stolen_cpu"`
	Stall  float64 `json:"stall_s"`
	// Starved is the longest time for which an ordinary thread waited for a processor.
	Starved float64 `json:"starved_s"`
	// Missing is why there are no values, or not all.
	Missing string `json:"missing,omitempty"`
	// Data are the raw figures behind the values.
	Data map[string]any `json:"data,omitempty"`

	notes    map[string][]string // by claim
	unusable []string            // claims whose value is not a number
	mu       *sync.Mutex
}

// Set writes the value of a claim. What is not a number counts as not measured.
func (s *Sheet) Set(id string, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		s.unusable = append(s.unusable, id)
		return
	}
	s.Values[id] = v
}

// SetAll writes the value of a claim that one run measures several times: the
// median. What is not a number makes all of it unusable.
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

// Note adds to a claim what its reader must know.
func (s *Sheet) Note(id, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes == nil {
		s.notes = map[string][]string{}
	}
	s.notes[id] = append(s.notes[id], fmt.Sprintf(format, args...))
}

// Fail says why values are missing.
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

// Keep adds raw figures to the result.
func (s *Sheet) Keep(key string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Data == nil {
		s.Data = map[string]any{}
	}
	s.Data[key] = data
}
