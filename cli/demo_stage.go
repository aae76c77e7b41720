package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"headgate/cli/view"
	"headgate/shaper"
)

// demoStage is the output of the demo.
type demoStage interface {
	// show calls run and shows its output. The context of run also ends when the user
	// quits on this stage.
	show(ctx context.Context, run func(context.Context) error) error
	// say prints lines.
	say(lines ...string)
	// status shows the current action, outside the phases.
	status(text string)
	phase(n int, p demoPhase)
	state(shaper.State)
}

// demoStage chooses the output: a live view on a terminal, otherwise lines. With -o json
// or yaml, standard output has only the result, and the lines go to standard error.
func (a *app) demoStage(f format) demoStage {
	if f != "table" {
		return &lineStage{w: a.err}
	}
	if width, live := a.terminalWidth(); live {
		return newLiveStage(a.in, a.out, width)
	}
	return &lineStage{w: a.out}
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

func (s *lineStage) phase(n int, p demoPhase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		s.began = time.Now()
	}
	s.print(announce(n, p)...)
}

// announce returns the announcement of a phase, in lines of at most 80 cells.
func announce(n int, p demoPhase) []string {
	lines := []string{"", fmt.Sprintf("[%d/%d] %s, %v", n+1, demoPhases, p.title, p.length)}
	return append(lines, wrapped(p.checkOutput, "  ", 78)...)
}

// wrapped breaks text between words into lines of at most width cells. A longer word has a line of its
// own.
func wrapped(text, indent string, width int) (out []string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && len(line)+1+len(word) > width {
			out = append(out, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return append(out, line)
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
			if i+1 < len(dir.Groups) && strings.HasPrefix(dir.Groups[i+1].Path, r.Path+"/") || r.Path == demoOthers {
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
type stageWriter struct{ demoStage }

func (w stageWriter) Write(b []byte) (int, error) {
	w.say("  " + strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
