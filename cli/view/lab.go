package view

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// LabFrame is what a running lab did in one interval.
type LabFrame struct {
	Lab string
	// Seconds are since the start of the run, which lasts for Length, or if that is 0
	// until its transfers are over.
	Seconds, Length float64
	Flows           []LabFlow
	Requests        []LabRequests
	Transfers       []LabTransfer
	Links           []LabLink
	Events          []string // all that have happened, the latest last
}

// LabFlow is one flow; rates are layer-2 bits per second.
type LabFlow struct {
	Name, Way          string // Way is "client > server"
	Offered, Delivered float64
	Lost               uint64 // datagrams, or segments that were sent again
	// SRTT, window (in segments) and jitter are 0 if there is none.
	SRTTus, Cwnd uint32
	Jitter       time.Duration
}

// LabRequests are what a flow's requests did in the interval, and how many are
// under way and wait at its end.
type LabRequests struct {
	Name              string
	Done              float64 // per second
	Refused, Failed   uint64
	UnderWay, Backlog uint64
	P50, P99          time.Duration // latency
}

// LabTransfer is how far a flow's transfers are.
type LabTransfer struct {
	Name      string
	Completed uint64 // of Times
	Times     int
	Failed    uint64
	Last      time.Duration // that the last one took
	Arrived   float64       // part of the one under way
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
	switch {
	case f.Seconds == 0:
		heading = fmt.Sprintf("lab %s  starting", f.Lab)
	case f.Length == 0:
		heading = fmt.Sprintf("lab %s  %.0f s, until its transfers are over", f.Lab, f.Seconds)
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
	labName   = 20
	labWay    = 24
	labRate   = 9
	labCount  = 8
	labTime   = 7
	labWindow = 6
	// labBefore is all of them and their gaps; in a window of labWide there is room
	// for congestion windows and jitter as well, and a history worth the name.
	labBefore = labName + labWay + 2*labRate + labCount + labTime + 7
	labWide   = labBefore + labWindow + labTime + 2 + 15
)

// lines are a table of flows, one each of what requests and transfers have to tell
// besides, and one of links.
func (s LabScreen) lines() (out []string) {
	for _, table := range [][]string{s.flowLines(), s.requestLines(), s.transferLines(), s.linkLines()} {
		if len(table) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, s.theme.dim.Render(table[0]))
		out = append(out, table[1:]...)
	}
	return out
}

// row is a line of flows or links. Extra are the cells between time and history.
func (s LabScreen) row(name, way, first, second, count, time, extra, history string) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s %s %s%s  %s",
		s.cell(name, labName), s.cell(way, labWay), padLeft(first, labRate), padLeft(second, labRate),
		padLeft(count, labCount), padLeft(time, labTime), extra, history), " ")
}

func (s LabScreen) cell(text string, width int) string {
	return padRight(fit(text, width, s.theme.more), width)
}

// spark is a row's history in what is left of the width.
func (s LabScreen) spark(key, extra string) string {
	width := min(s.width-labBefore-len(extra), historyLength)
	if width <= 0 {
		return ""
	}
	return s.theme.spark(Row{History: s.history[key]}, width)
}

func (s LabScreen) flowLines() (out []string) {
	if len(s.frame.Flows) == 0 {
		return nil
	}
	cwnd, jitter := false, false
	for _, f := range s.frame.Flows {
		cwnd, jitter = cwnd || f.Cwnd > 0, jitter || f.Jitter > 0
	}
	extras := func(window, time string) (cells string) {
		if cwnd && s.width >= labWide {
			cells += " " + padLeft(window, labWindow)
		}
		if jitter && s.width >= labWide {
			cells += " " + padLeft(time, labTime)
		}
		return cells
	}
	out = append(out, s.row("FLOW", "", "OFFERED", "RATE", "LOST", "SRTT", extras("CWND", "JITTER"), "HISTORY"))
	for _, f := range s.frame.Flows {
		srtt, window, time := "", "", ""
		if f.SRTTus > 0 {
			srtt = Digits(float64(f.SRTTus)/1e3) + "ms"
		}
		if f.Cwnd > 0 {
			window = fmt.Sprint(f.Cwnd)
		}
		if f.Jitter > 0 {
			time = Delay(f.Jitter)
		}
		extra := extras(window, time)
		out = append(out, s.row(f.Name, f.Way, Rate(f.Offered), Rate(f.Delivered), fmt.Sprint(f.Lost), srtt, extra, s.spark("flow "+f.Name, extra)))
	}
	return out
}

func (s LabScreen) requestLines() (out []string) {
	row := func(name string, cells ...string) {
		line := s.cell(name, labName)
		for _, c := range cells {
			line += " " + padLeft(c, labRate)
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	if len(s.frame.Requests) == 0 {
		return nil
	}
	row("REQUESTS", "DONE/S", "P50", "P99", "REFUSED", "FAILED", "UNDER WAY", "BACKLOG")
	for _, r := range s.frame.Requests {
		p50, p99 := "", ""
		if r.Done > 0 {
			p50, p99 = Delay(r.P50), Delay(r.P99)
		}
		row(r.Name, perSecond(r.Done), p50, p99, fmt.Sprint(r.Refused), fmt.Sprint(r.Failed), fmt.Sprint(r.UnderWay), fmt.Sprint(r.Backlog))
	}
	return out
}

func (s LabScreen) transferLines() (out []string) {
	if len(s.frame.Transfers) == 0 {
		return nil
	}
	row := func(name, done, failed, last, arrived string) {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", s.cell(name, labName),
			padLeft(done, labRate), padLeft(failed, labRate), padLeft(last, labRate), padLeft(arrived, labRate)), " "))
	}
	row("TRANSFERS", "DONE", "FAILED", "LAST TOOK", "ARRIVED")
	for _, t := range s.frame.Transfers {
		last, arrived := "", ""
		if t.Completed > 0 {
			last = Delay(t.Last)
		}
		if t.Arrived > 0 {
			arrived = fmt.Sprintf("%.0f%%", 100*t.Arrived)
		}
		row(t.Name, fmt.Sprintf("%d of %d", t.Completed, t.Times), fmt.Sprint(t.Failed), last, arrived)
	}
	return out
}

func (s LabScreen) linkLines() (out []string) {
	if len(s.frame.Links) == 0 {
		return nil
	}
	out = append(out, s.row("LINK", "", "", "RATE", "DROPPED", "", "", "HISTORY"))
	for _, l := range s.frame.Links {
		out = append(out, s.row(l.Name, l.Way, "", Rate(l.Rate), fmt.Sprint(l.Dropped), "", "", s.spark("link "+l.Name+l.Way, "")))
	}
	return out
}
