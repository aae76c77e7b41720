package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/shaper"
)

// Source reads the actual state of the watched devices. Devices without Headgate's
// traffic control are left out, and are no error.
type Source func() ([]shaper.State, error)

// Screen is the live view of "headgate top", a model of bubbletea.
type Screen struct {
	source   Source
	interval time.Duration
	theme    Theme
	tracker  *Tracker

	frame         Frame // the frame that is shown
	latest        Frame // the last frame, also while paused
	err           error // of the last observation
	width, height int
	focus         string
	sort          Order
	offset        int
	paused, help  bool
}

// NewScreen returns a live view that polls source at every interval.
func NewScreen(source Source, interval time.Duration, theme Theme) Screen {
	return Screen{source: source, interval: interval, theme: theme, tracker: &Tracker{}, width: 80, height: 24}
}

// observed is the message with the result of source.
type observed struct {
	states []shaper.State
	err    error
	began  time.Time
}

// tick is the message that starts the next observation.
type tick struct{}

// Init implements tea.Model.
func (s Screen) Init() tea.Cmd { return s.observe }

func (s Screen) observe() tea.Msg {
	began := time.Now()
	states, err := s.source()
	return observed{states, err, began}
}

// Update implements tea.Model.
func (s Screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyMsg:
		return s.key(m.String())
	case tick:
		return s, s.observe
	case observed:
		s.take(m)
		// The interval starts at the beginning of the last observation, so that slow observations do
		// not accumulate.
		return s, tea.Tick(max(s.interval-time.Since(m.began), 10*time.Millisecond), func(time.Time) tea.Msg { return tick{} })
	}
	s.offset = min(s.offset, s.maxOffset())
	return s, nil
}

func (s *Screen) take(m observed) {
	s.err = m.err
	if m.err != nil {
		return // keep the last frame
	}
	first := len(s.latest.Devices) == 0
	s.latest = s.tracker.Update(m.began, m.states)
	if !s.paused || first {
		s.frame = s.latest
	}
	s.offset = min(s.offset, s.maxOffset())
}

func (s Screen) key(key string) (tea.Model, tea.Cmd) {
	page := max(s.room()-1, 1)
	switch key {
	case "q", "ctrl+c", "esc":
		if s.help && key == "esc" {
			s.help = false
			break
		}
		return s, tea.Quit
	case "d":
		s.focus, s.offset = s.next(), 0
	case "s":
		s.sort, s.offset = (s.sort+1)%orders, 0
	case "p", " ":
		s.paused = !s.paused
		s.frame = s.latest
	case "?", "h":
		s.help, s.offset = !s.help, 0
	case "up", "k":
		s.offset--
	case "down", "j":
		s.offset++
	case "pgup":
		s.offset -= page
	case "pgdown":
		s.offset += page
	case "home", "g":
		s.offset = 0
	case "end", "G":
		s.offset = s.maxOffset()
	}
	s.offset = max(min(s.offset, s.maxOffset()), 0)
	return s, nil
}

// next returns the device after the one in focus, or "" (all devices) after the last.
func (s Screen) next() string {
	var names []string
	for _, d := range s.frame.Devices {
		names = append(names, d.Dev)
	}
	i := slices.Index(names, s.focus) + 1
	if i >= len(names) || len(names) == 1 {
		return ""
	}
	return names[i]
}

// View implements tea.Model.
func (s Screen) View() string {
	heading, lines := s.body()
	above := []string{}
	if heading != "" {
		above = append(above, heading)
	}
	if room := s.room(); len(lines) > room {
		lines = lines[s.offset:min(s.offset+room, len(lines))]
	}
	out := append(above, lines...)
	for len(out) < s.height-1 {
		out = append(out, "")
	}
	return strings.Join(append(out, s.footer()), "\n")
}

func (s Screen) body() (heading string, lines []string) {
	switch {
	case s.help:
		return "", helpLines(s.theme, s.width)
	case len(s.frame.Devices) == 0 && s.err == nil && s.frame.At.IsZero():
		return "", []string{"reading"}
	case len(s.frame.Devices) == 0:
		return "", []string{"No device has bandwidth groups: create them with \"headgate apply -f FILE\".", "Waiting for a device."}
	}
	return Render(s.frame, Options{Width: s.width, Focus: s.focus, Sort: s.sort, Theme: s.theme})
}

// room returns the number of lines between heading and footer.
func (s Screen) room() int { return max(s.height-2, 1) }

// maxOffset returns the offset at which the last line is visible.
func (s Screen) maxOffset() int {
	_, lines := s.body()
	return max(len(lines)-s.room(), 0)
}

func (s Screen) footer() string {
	if s.err != nil {
		return truncateStyled(s.theme.alarm.Render(s.err.Error()), s.width)
	}
	left := "q quit  d device  s sort  p pause  ? help"
	state := []string{}
	if s.paused {
		state = append(state, "paused")
	}
	if s.focus != "" {
		state = append(state, "only "+s.focus)
	}
	if s.sort != ByPlan {
		state = append(state, s.sort.String())
	}
	if f := s.maxOffset(); f > 0 {
		_, lines := s.body()
		state = append(state, fmt.Sprintf("lines %d-%d of %d", s.offset+1, min(s.offset+s.room(), len(lines)), len(lines)))
	}
	if at := s.frame.At; !at.IsZero() {
		state = append(state, at.Local().Format(time.TimeOnly))
	}
	right := strings.Join(state, "  ")
	gap := max(s.width-len(left)-len(right), 2)
	return truncateStyled(s.theme.dim.Render(left)+strings.Repeat(" ", gap)+right, s.width)
}

func helpLines(t Theme, width int) []string {
	g := t.signs
	lines := []string{
		t.bold.Render("Keys"),
		"  q       quit",
		"  d       next device, or all devices",
		"  s       sort: as configured, by rate, by borrowed, by drops",
		"  p       pause the view; counters continue",
		"  arrows  scroll, also page up and page down",
		"  ?       show or hide this help",
		"",
		t.bold.Render("Bars") + "  from 0 to the direction's limit",
		fmt.Sprintf("  %s  within the guarantee     %s  the guarantee", strings.Repeat(string(g.fill[len(g.fill)-1]), 3), string(g.mark)),
		fmt.Sprintf("  %s  borrowed                 %s  unused up to the ceiling", strings.Repeat(string(g.borrowed), 3), strings.Repeat(string(g.unused), 3)),
		"",
		t.bold.Render("Columns"),
		"  BORROWED  + borrowed above the guarantee, - lent to other groups",
		"  DROPS/s   packets dropped from full queues",
		"  MARKS/s   packets marked CE (ECN), so that senders slow down",
		"  DELAY     queue delay of the last packet sent",
		"  HISTORY   the last 60 rates; full height is the guarantee or the maximum",
		"  (control) ARP, ND, DHCP and pure ACKs, sent first within a budget",
	}
	for i := range lines {
		lines[i] = truncateStyled(lines[i], width)
	}
	return lines
}
