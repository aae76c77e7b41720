package view

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// LabFrame is what a running lab did in one interval.
type LabFrame struct {
	Lab string
	// Seconds are since the start of the run, which lasts for Length.
	Seconds, Length float64
	Flows           []LabFlow
	Links           []LabLink
	Events          []string // all that have happened, the latest last
}

// LabFlow is one flow; rates are layer-2 bits per second.
type LabFlow struct {
	Name, Way          string // Way is "client > server"
	Offered, Delivered float64
	Lost               uint64 // datagrams, or segments that were sent again
	SRTTus             uint32 // 0 if there is none
}

// LabLink is one direction of a link.
type LabLink struct {
	Name, Way string
	Rate      float64
	Dropped   uint64
}

// LabScreen is the live view of a lab that runs, a model of bubbletea. It is sent
// LabFrames, and a LabOver when the run has ended.
type LabScreen struct {
	theme         Theme
	stop          func()
	frame         LabFrame
	history       map[string][]float64 // by row
	width, height int
	offset        int
	stopping      bool
}

// LabOver ends the screen.
type LabOver struct{}

// NewLabScreen is a live view of the lab of that name. stop is called when the
// user wants the run to end.
func NewLabScreen(name string, length float64, theme Theme, stop func()) LabScreen {
	return LabScreen{theme: theme, stop: stop, frame: LabFrame{Lab: name, Length: length}, history: map[string][]float64{}, width: 80, height: 24}
}

// Init is part of tea.Model.
func (s LabScreen) Init() tea.Cmd { return nil }

// Update is part of tea.Model.
func (s LabScreen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case LabFrame:
		s.take(m)
	case LabOver:
		return s, tea.Quit
	case tea.KeyMsg:
		switch m.String() {
		case "q", "ctrl+c":
			s.stopping = true
			s.stop() // LabOver follows, when all has ended
		case "up", "k":
			s.offset--
		case "down", "j":
			s.offset++
		}
	}
	s.offset = max(min(s.offset, len(s.lines())-s.room()), 0)
	return s, nil
}

func (s *LabScreen) take(f LabFrame) {
	s.frame = f
	add := func(row string, v float64) {
		h := append(s.history[row], v)
		s.history[row] = h[max(0, len(h)-historyLength):]
	}
	for _, flow := range f.Flows {
		add("flow "+flow.Name, flow.Delivered)
	}
	for _, l := range f.Links {
		add("link "+l.Name+l.Way, l.Rate)
	}
}

// room is how many lines fit between heading and footer.
func (s LabScreen) room() int { return max(s.height-2, 1) }

// View is part of tea.Model.
func (s LabScreen) View() string {
	f := s.frame
	heading := fmt.Sprintf("lab %s  %.0f of %.0f s", f.Lab, f.Seconds, f.Length)
	if f.Seconds == 0 {
		heading = fmt.Sprintf("lab %s  starting", f.Lab)
	}
	if s.stopping {
		heading += "  stopping"
	}
	lines := s.lines()
	if room := s.room(); len(lines) > room {
		lines = lines[min(s.offset, len(lines)-room):]
		lines = lines[:room]
	}
	out := []string{fit2(s.theme.bold.Render(heading), s.width)}
	for _, l := range lines {
		out = append(out, fit2(l, s.width))
	}
	for len(out) < s.height-1 {
		out = append(out, "")
	}
	footer := "q stop"
	if len(s.lines()) > s.room() {
		footer += "  up, down scroll"
	}
	if n := len(f.Events); n > 0 {
		footer += "  last event: " + f.Events[n-1]
	}
	return strings.Join(append(out, fit2(s.theme.dim.Render(footer), s.width)), "\n")
}

// Widths of the columns before the history, in cells.
const (
	labName = 20
	labWay  = 24
	labRate = 9
)

// lines are a table of flows and one of links.
func (s LabScreen) lines() (out []string) {
	t := s.theme
	row := func(name, way, first, second, lost, srtt, history string) string {
		return strings.TrimRight(fmt.Sprintf("%s %s %s %s %s %s  %s",
			padRight(fit(name, labName, t.more), labName), padRight(fit(way, labWay, t.more), labWay),
			padLeft(first, labRate), padLeft(second, labRate), padLeft(lost, 8), padLeft(srtt, 7), history), " ")
	}
	// What is left of the width after the columns and their gaps.
	width := max(min(s.width-(labName+labWay+2*labRate+8+7+7), historyLength), 0)
	spark := func(key string) string {
		if width == 0 {
			return ""
		}
		return t.spark(Row{History: s.history[key]}, width)
	}
	if len(s.frame.Flows) > 0 {
		out = append(out, t.dim.Render(row("FLOW", "", "OFFERED", "RATE", "LOST", "SRTT", "HISTORY")))
		for _, f := range s.frame.Flows {
			srtt := ""
			if f.SRTTus > 0 {
				srtt = Digits(float64(f.SRTTus)/1e3) + "ms"
			}
			out = append(out, row(f.Name, f.Way, Rate(f.Offered), Rate(f.Delivered), fmt.Sprint(f.Lost), srtt, spark("flow "+f.Name)))
		}
		out = append(out, "")
	}
	if len(s.frame.Links) > 0 {
		out = append(out, t.dim.Render(row("LINK", "", "", "RATE", "DROPPED", "", "HISTORY")))
		for _, l := range s.frame.Links {
			out = append(out, row(l.Name, l.Way, "", Rate(l.Rate), fmt.Sprint(l.Dropped), "", spark("link "+l.Name+l.Way)))
		}
	}
	return out
}
