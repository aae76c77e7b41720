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

// demoStage is where the demo is shown.
type demoStage interface {
	// show calls run and shows what it says. The context that run gets ends also
	// when the user asks for an end on this stage.
	show(ctx context.Context, run func(context.Context) error) error
	// say adds lines to what is told.
	say(lines ...string)
	// status says what is done now, besides the phases.
	status(text string)
	phase(n int, p demoPhase)
	state(shaper.State)
}

// demoStage chooses one: a live view on a terminal, lines elsewhere. What a
// program asked for goes alone to standard output.
func (a *app) demoStage(f format) demoStage {
	if f != "table" {
		return &lineStage{w: a.err}
	}
	if width, live := a.terminal(); live {
		return newLiveStage(a.in, a.out, width)
	}
	return &lineStage{w: a.out}
}

// lineStage prints lines.
type lineStage struct {
	mu      sync.Mutex // what is observed and what is done are told by two goroutines
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

// announce says what comes, in lines of at most 80 cells.
func announce(n int, p demoPhase) []string {
	lines := []string{"", fmt.Sprintf("[%d/%d] %s, %v", n+1, demoPhases, p.title, p.length)}
	return append(lines, wrapped(p.says, "  ", 78)...)
}

// wrapped breaks text into lines of at most width cells, if its words allow it.
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

// state prints a line of rates a second.
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

// rateLine is the rates of a device's groups that carry traffic, in Mbit/s, out/in.
func rateLine(d view.Device) string {
	var names []string
	rates := map[string][]string{}
	for _, dir := range d.Directions {
		for i, r := range dir.Groups {
			if i+1 < len(dir.Groups) && strings.HasPrefix(dir.Groups[i+1].Path, r.Path+"/") || r.Path == demoNobody {
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

// stageWriter makes log lines part of what is told.
type stageWriter struct{ demoStage }

func (w stageWriter) Write(b []byte) (int, error) {
	w.say("  " + strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
