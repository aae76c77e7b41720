package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// stage is the output of the demo.
type stage interface {
	// show calls run and shows its output. The context of run also ends when the user
	// quits on this stage.
	show(ctx context.Context, run func(context.Context) error) error
	// say prints lines.
	say(lines ...string)
	// status shows the current action, outside the phases.
	status(text string)
	// phase announces a phase, which begins now.
	phase(n int, p scenario.Phase)
	// state shows the groups of a device.
	state(shaper.State)
}

// newStage chooses the output: a live view on a terminal, otherwise lines.
func newStage(o Options) stage {
	if o.Width > 0 {
		return newLiveStage(o.In, o.Out, o.Width)
	}
	return &lineStage{w: o.Out}
}

// lineStage prints lines.
type lineStage struct {
	mu      sync.Mutex // two goroutines print: the observer, and the one that runs the phases
	w       io.Writer
	began   time.Time
	last    time.Time // of the last line of rates
	tracker view.Tracker
}

func (s *lineStage) show(ctx context.Context, run func(context.Context) error) error { return run(ctx) }

func (s *lineStage) say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(lines...)
}

func (s *lineStage) print(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(s.w, l)
	}
}

func (s *lineStage) status(string) {}

func (s *lineStage) phase(n int, p scenario.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		s.began = time.Now()
	}
	s.print(announce(n, p)...)
}

// announce returns the announcement of a phase, in lines of at most 80 cells.
func announce(n int, p scenario.Phase) []string {
	lines := []string{"", fmt.Sprintf("[%d/%d] %s, %v", n+1, scenario.PhaseCount, p.Title, p.Length)}
	return append(lines, text.Wrap(p.Text, "  ", 78)...)
}

// state prints a line of rates once a second.
func (s *lineStage) state(state shaper.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const every = time.Second
	if !s.last.IsZero() && state.At.Sub(s.last) < every*9/10 {
		return
	}
	s.last = state.At
	f := s.tracker.Update(state.At, []shaper.State{state})
	if d := f.Devices[0]; d.Seconds > 0 && !s.began.IsZero() {
		s.print(fmt.Sprintf("%6.1fs  %s", state.At.Sub(s.began).Seconds(), rateLine(d)))
	}
}

// rateLine formats the rates of a device's leaf groups, in Mbit/s, out/in.
func rateLine(d view.Device) string {
	var names []string
	rates := map[string][]string{}
	for _, dir := range d.Directions {
		for i, r := range dir.Groups {
			if i+1 < len(dir.Groups) && strings.HasPrefix(dir.Groups[i+1].Path, r.Path+"/") || r.Path == scenario.Others {
				continue
			}
			if rates[r.Path] == nil {
				names = append(names, r.Path)
			}
			rates[r.Path] = append(rates[r.Path], fmt.Sprintf("%.1f", r.Rate/1e6))
		}
	}
	var line []string
	for _, path := range names {
		line = append(line, strings.TrimSpace(indentedPath(path))+" "+strings.Join(rates[path], "/"))
	}
	return strings.Join(line, "  ")
}

// stageWriter prints log lines on the stage.
type stageWriter struct{ stage }

func (w stageWriter) Write(b []byte) (int, error) {
	w.say("  " + strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
