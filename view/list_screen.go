package view

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// ListScreen is a live view of lines that scroll, a model of bubbletea. S is what it shows.
type ListScreen[S any] struct {
	source   func() (S, error)
	draw     func(S, Theme, int) []string // lines of at most this width
	interval time.Duration
	theme    Theme

	state         S
	seen, paused  bool
	err           error // of the last observation
	width, height int
	offset        int
}

func newListScreen[S any](source func() (S, error), draw func(S, Theme, int) []string, interval time.Duration, theme Theme) ListScreen[S] {
	return ListScreen[S]{source: source, draw: draw, interval: interval, theme: theme, width: 80, height: 24}
}

// observation is the message with the result of source.
type observation[S any] struct {
	state S
	err   error
	began time.Time
}

// Init implements tea.Model.
func (s ListScreen[S]) Init() tea.Cmd { return s.observe }

func (s ListScreen[S]) observe() tea.Msg {
	began := time.Now()
	state, err := s.source()
	return observation[S]{state, err, began}
}

// Update implements tea.Model.
func (s ListScreen[S]) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyMsg:
		return s.key(m.String())
	case tick:
		return s, s.observe
	case observation[S]:
		s.err = m.err
		if m.err == nil && !s.paused { // else keep the last state
			s.state, s.seen = m.state, true
		}
		s.offset = min(s.offset, s.maxOffset())
		return s, tea.Tick(max(s.interval-time.Since(m.began), 10*time.Millisecond), func(time.Time) tea.Msg { return tick{} })
	}
	s.offset = min(s.offset, s.maxOffset())
	return s, nil
}

func (s ListScreen[S]) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c", "esc":
		return s, tea.Quit
	case "p", " ":
		s.paused = !s.paused
	case "up", "k":
		s.offset--
	case "down", "j":
		s.offset++
	case "pgup":
		s.offset -= s.room()
	case "pgdown":
		s.offset += s.room()
	}
	s.offset = max(min(s.offset, s.maxOffset()), 0)
	return s, nil
}

func (s ListScreen[S]) lines() []string {
	if !s.seen {
		return []string{"reading"}
	}
	return s.draw(s.state, s.theme, s.width)
}

func (s ListScreen[S]) room() int { return max(s.height-1, 1) }

func (s ListScreen[S]) maxOffset() int { return max(len(s.lines())-s.room(), 0) }

// View implements tea.Model.
func (s ListScreen[S]) View() string {
	lines := s.lines()
	if room := s.room(); len(lines) > room {
		lines = lines[s.offset:min(s.offset+room, len(lines))]
	}
	for len(lines) < s.room() {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, s.footer()), "\n")
}

func (s ListScreen[S]) footer() string {
	if s.err != nil {
		return truncateStyled(s.theme.alarm.Render(s.err.Error()), s.width)
	}
	text := "q quit  p pause  arrows scroll"
	if s.paused {
		text += "  paused"
	}
	if f := s.maxOffset(); f > 0 {
		text += fmt.Sprintf("  line %d of %d", s.offset+1, len(s.lines()))
	}
	return truncateStyled(s.theme.Dim(text), s.width)
}
