package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/lab/report"
	"headgate.dev/headgate/unit/rounded"
)

// LabScreen is the live view of a running lab, a model of bubbletea. The caller sends
// report.Frames, and LabDone at the end of the run.
type LabScreen struct {
	theme         Theme
	stop          func()
	frame         report.Frame
	history       map[string][]float64 // by row
	width, height int
	offset        int
	stopping      bool
}

// LabDone is the message that ends the screen.
type LabDone struct{}

// NewLabScreen returns a live view of the lab with this name. The screen calls stop when
// the user quits.
func NewLabScreen(name string, length float64, theme Theme, stop func()) LabScreen {
	return LabScreen{theme: theme, stop: stop, frame: report.Frame{Lab: name, Length: length}, history: map[string][]float64{}, width: 80, height: 24}
}

// RunLab shows a lab while run runs it: run passes frames to show, and ends when its context does, which the user
// can end.
func RunLab(ctx context.Context, name string, length float64, in io.Reader, out io.Writer, run func(ctx context.Context, show func(report.Frame)) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	program := tea.NewProgram(NewLabScreen(name, length, NewTheme(out), stop), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler())
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = run(ctx, func(f report.Frame) { program.Send(f) })
		program.Send(LabDone{})
	}()
	_, err := program.Run()
	if err != nil {
		stop() // the view failed, so the user cannot stop the run
	}
	<-done
	return errors.Join(failed, err)
}

// Init implements tea.Model.
func (s LabScreen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s LabScreen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case report.Frame:
		s.take(m)
	case LabDone:
		return s, tea.Quit
	case tea.KeyMsg:
		switch m.String() {
		case "q", "ctrl+c":
			s.stopping = true
			s.stop() // LabDone follows at the end of the run
		case "up", "k":
			s.offset--
		case "down", "j":
			s.offset++
		}
	}
	s.offset = max(min(s.offset, len(s.lines())-s.visibleLines()), 0)
	return s, nil
}

func (s *LabScreen) take(f report.Frame) {
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

// visibleLines returns the number of lines between heading and footer.
func (s LabScreen) visibleLines() int { return max(s.height-2, 1) }

// View implements tea.Model.
func (s LabScreen) View() string {
	f := s.frame
	heading := fmt.Sprintf("lab %s  %.0f of %.0f s", f.Lab, f.Seconds, f.Length)
	switch {
	case f.Seconds == 0:
		heading = fmt.Sprintf("lab %s  starting", f.Lab)
	case f.Length == 0:
		heading = fmt.Sprintf("lab %s  %.0f s, until all transfers end", f.Lab, f.Seconds)
	}
	if s.stopping {
		heading += "  stopping"
	}
	lines := s.lines()
	if room := s.visibleLines(); len(lines) > room {
		lines = lines[min(s.offset, len(lines)-room):]
		lines = lines[:room]
	}
	out := []string{truncateStyled(s.theme.bold.Render(heading), s.width)}
	for _, l := range lines {
		out = append(out, truncateStyled(l, s.width))
	}
	for len(out) < s.height-1 {
		out = append(out, "")
	}
	footer := "q stop"
	if len(s.lines()) > s.visibleLines() {
		footer += "  up, down scroll"
	}
	if n := len(f.Events); n > 0 {
		footer += "  last event: " + f.Events[n-1]
	}
	return strings.Join(append(out, truncateStyled(s.theme.dim.Render(footer), s.width)), "\n")
}

// Widths of the columns before the history, in cells.
const (
	labName   = 20
	labWay    = 24
	labRate   = 9
	labCount  = 8
	labTime   = 7
	labWindow = 6
	// labBefore is the sum of all widths with gaps. A window of labWide also has space for
	// congestion windows, jitter, and a useful history.
	labBefore = labName + labWay + 2*labRate + labCount + labTime + 7
	labWide   = labBefore + labWindow + labTime + 2 + 15
)

// lines returns tables of flows, requests, transfers and links.
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

// row returns a line of flows or links. extra is the cells between time and history.
func (s LabScreen) row(name, way, first, second, count, time, extra, history string) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s %s %s%s  %s",
		s.cell(name, labName), s.cell(way, labWay), padLeft(first, labRate), padLeft(second, labRate),
		padLeft(count, labCount), padLeft(time, labTime), extra, history), " ")
}

func (s LabScreen) cell(text string, width int) string {
	return padRight(truncate(text, width, s.theme.more), width)
}

// spark returns a row's history in the remaining width.
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
			srtt = rounded.Digits(float64(f.SRTTus)/1e3) + "ms"
		}
		if f.Cwnd > 0 {
			window = fmt.Sprint(f.Cwnd)
		}
		if f.Jitter > 0 {
			time = rounded.Delay(f.Jitter)
		}
		extra := extras(window, time)
		out = append(out, s.row(f.Name, f.Direction, rounded.Rate(f.Offered), rounded.Rate(f.Delivered), fmt.Sprint(f.Lost), srtt, extra, s.spark("flow "+f.Name, extra)))
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
			p50, p99 = rounded.Delay(r.P50), rounded.Delay(r.P99)
		}
		row(r.Name, rounded.PerSecond(r.Done), p50, p99, fmt.Sprint(r.Refused), fmt.Sprint(r.Failed), fmt.Sprint(r.UnderWay), fmt.Sprint(r.Backlog))
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
	row("TRANSFERS", "DONE", "FAILED", "LAST TIME", "ARRIVED")
	for _, t := range s.frame.Transfers {
		last, arrived := "", ""
		if t.Completed > 0 {
			last = rounded.Delay(t.Last)
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
		out = append(out, s.row(l.Name, l.Way, "", rounded.Rate(l.Rate), fmt.Sprint(l.Dropped), "", "", s.spark("link "+l.Name+l.Way, "")))
	}
	return out
}
