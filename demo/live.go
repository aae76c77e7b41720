package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// liveStage shows the demo on a terminal: text scrolls, and a live view of the
// groups stays below it.
type liveStage struct {
	program *tea.Program
	cancel  chan struct{} // closed when the user quits
}

func newLiveStage(in io.Reader, out io.Writer, width int) *liveStage {
	s := &liveStage{cancel: make(chan struct{})}
	panel := livePanel{theme: view.NewTheme(out), tracker: &view.Tracker{}, width: width, height: 24, cancel: s.cancel}
	s.program = tea.NewProgram(panel, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	return s
}

func (s *liveStage) show(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		s.program.Send(quitMessage{})
		ended <- err
	}()
	go func() {
		select {
		case <-s.cancel:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, screenErr := s.program.Run()
	// If the screen failed, stop the demo in order, so that it cleans up its network.
	if screenErr != nil {
		cancel()
	}
	if err := <-ended; err != nil {
		return err
	}
	return screenErr
}

func (s *liveStage) say(lines ...string)           { s.program.Send(said(lines)) }
func (s *liveStage) status(text string)            { s.program.Send(doing(text)) }
func (s *liveStage) phase(n int, p scenario.Phase) { s.program.Send(phaseMessage{n, p, time.Now()}) }
func (s *liveStage) state(state shaper.State)      { s.program.Send(state) }

// Messages of bubbletea to the panel.
type (
	said         []string
	doing        string
	quitMessage  struct{}
	tick         struct{}
	printed      struct{}
	phaseMessage struct {
		n     int
		p     scenario.Phase
		began time.Time
	}
)

// livePanel is the view below the text. It implements tea.Model.
type livePanel struct {
	theme         view.Theme
	tracker       *view.Tracker
	width, height int
	cancel        chan struct{}

	text     []string // lines that are not printed yet
	printing bool
	status   string
	phase    *phaseMessage
	frame    view.Frame
	now      time.Time
	ending   bool
	curtain  bool
}

// Init implements tea.Model.
func (p livePanel) Init() tea.Cmd { return nextTick() }

func nextTick() tea.Cmd {
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

// Update implements tea.Model.
func (p livePanel) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		p.width, p.height = m.Width, m.Height
	case tea.KeyMsg:
		if k := m.String(); (k == "ctrl+c" || k == "q") && !p.ending {
			p.ending = true
			close(p.cancel)
		}
	case said:
		for _, line := range m {
			p.text = append(p.text, p.folded(line)...)
		}
	case printed:
		p.printing = false
	case doing:
		p.status, p.phase = string(m), nil
	case phaseMessage:
		p.phase = &m
		lines := announce(m.n, m.p)
		lines[1] = p.theme.Bold(lines[1])
		p.text = append(p.text, lines...)
	case shaper.State:
		p.frame = p.tracker.Update(m.At, []shaper.State{m})
	case tick:
		p.now = time.Now()
		return p, nextTick()
	case quitMessage:
		p.curtain = true
	}
	return p.print()
}

// folded breaks a line that is wider than the terminal and would overwrite the view
// below.
func (p livePanel) folded(line string) []string {
	runes := []rune(line)
	if len(runes) <= p.width {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var out []string
	for _, l := range text.Wrap(line, indent+"  ", p.width) {
		// A single word may still be wider than the terminal.
		for runes = []rune(l); len(runes) > p.width; runes = runes[p.width:] {
			out = append(out, string(runes[:p.width]))
		}
		out = append(out, string(runes))
	}
	out[0] = strings.Replace(out[0], indent+"  ", indent, 1)
	return out
}

// print prints the pending text, one command at a time, because concurrent commands
// may end in any order.
func (p livePanel) print() (tea.Model, tea.Cmd) {
	switch {
	case p.printing:
		return p, nil
	case len(p.text) > 0:
		text := strings.Join(p.text, "\n")
		p.text, p.printing = nil, true
		return p, tea.Sequence(tea.Println(text), func() tea.Msg { return printed{} })
	case p.curtain:
		return p, tea.Quit
	}
	return p, nil
}

// View implements tea.Model.
func (p livePanel) View() string {
	if p.curtain {
		return ""
	}
	out := []string{"", p.headline()}
	if len(p.frame.Devices) > 0 && p.phase != nil {
		heading, lines := view.Render(ofTenants(p.frame), view.Options{Width: p.width, Theme: p.theme})
		out = append(append(out, heading), lines...)
	}
	// Keep some lines of the text above visible.
	const text = 3
	if most := max(p.height-text, 3); len(out) > most {
		out = out[:most]
	}
	return strings.Join(out, "\n")
}

// ofTenants removes the group that belongs to no tenant, because there is little space below the text.
func ofTenants(f view.Frame) view.Frame {
	f.Devices = slices.Clone(f.Devices)
	for i, d := range f.Devices {
		d.Directions = slices.Clone(d.Directions)
		for j, dir := range d.Directions {
			d.Directions[j].Groups = slices.DeleteFunc(slices.Clone(dir.Groups), func(r view.Row) bool {
				return r.Path == scenario.Others
			})
		}
		f.Devices[i].Directions = d.Directions
	}
	return f
}

// headline is the line with the current phase and its progress.
func (p livePanel) headline() string {
	switch {
	case p.ending:
		return "stopping and cleaning up"
	case p.phase == nil && p.status != "":
		return p.status
	case p.phase == nil:
		return "creating the network"
	}
	s := p.phase
	part := min(max(float64(p.now.Sub(s.began))/float64(s.p.Length), 0), 1)
	const cells = 20
	done := int(part * cells)
	text := fmt.Sprintf("%d/%d %s %s%s", s.n+1, scenario.PhaseCount, s.p.Title, strings.Repeat("=", done), strings.Repeat("-", cells-done))
	const keys = "q quit"
	return p.theme.Bold(text) + strings.Repeat(" ", max(p.width-len(text)-len(keys), 2)) + p.theme.Dim(keys)
}
