package view

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/collective/host"
)

// SetScreen is the live view of "headgate collective top", a model of bubbletea.
type SetScreen struct {
	source   func() ([]host.State, error)
	interval time.Duration
	theme    Theme
	tracker  *SetTracker

	sets          []Set
	seen, paused  bool
	err           error // of the last observation
	width, height int
	offset        int
}

// NewSetScreen returns a live view that polls source at every interval.
func NewSetScreen(source func() ([]host.State, error), interval time.Duration, theme Theme) SetScreen {
	return SetScreen{source: source, interval: interval, theme: theme, tracker: &SetTracker{}, width: 80, height: 24}
}

// observedSets is the message with the result of source.
type observedSets struct {
	states []host.State
	err    error
	began  time.Time
}

// Init implements tea.Model.
func (s SetScreen) Init() tea.Cmd { return s.observe }

func (s SetScreen) observe() tea.Msg {
	began := time.Now()
	states, err := s.source()
	return observedSets{states, err, began}
}

// Update implements tea.Model.
func (s SetScreen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyMsg:
		return s.key(m.String())
	case tick:
		return s, s.observe
	case observedSets:
		s.err = m.err
		if m.err == nil { // else keep the last sets
			sets := s.tracker.Update(m.states)
			if !s.paused {
				s.sets, s.seen = sets, true
			}
		}
		s.offset = min(s.offset, s.maxOffset())
		return s, tea.Tick(max(s.interval-time.Since(m.began), 10*time.Millisecond), func(time.Time) tea.Msg { return tick{} })
	}
	s.offset = min(s.offset, s.maxOffset())
	return s, nil
}

func (s SetScreen) key(key string) (tea.Model, tea.Cmd) {
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

func (s SetScreen) lines() []string {
	if !s.seen {
		return []string{"reading"}
	}
	return SetLines(s.sets, s.theme, s.width)
}

func (s SetScreen) room() int { return max(s.height-1, 1) }

func (s SetScreen) maxOffset() int { return max(len(s.lines())-s.room(), 0) }

// View implements tea.Model.
func (s SetScreen) View() string {
	lines := s.lines()
	if room := s.room(); len(lines) > room {
		lines = lines[s.offset:min(s.offset+room, len(lines))]
	}
	for len(lines) < s.room() {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, s.footer()), "\n")
}

func (s SetScreen) footer() string {
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
