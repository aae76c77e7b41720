package view

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// run is a Screen to which the test sends messages.
type run struct {
	*testing.T
	Screen
}

func newRun(t *testing.T, width, height int) *run {
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC
	s := NewScreen(nil, time.Second, plainTheme())
	r := &run{t, s}
	r.send(tea.WindowSizeMsg{Width: width, Height: height})
	return r
}

func (r *run) send(m tea.Msg) tea.Cmd {
	model, cmd := r.Screen.Update(m)
	r.Screen = model.(Screen)
	return cmd
}

func (r *run) keys(keys ...string) {
	for _, k := range keys {
		m := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
		switch k {
		case "down":
			m = tea.KeyMsg{Type: tea.KeyDown}
		case "pgdown":
			m = tea.KeyMsg{Type: tea.KeyPgDown}
		case "end":
			m = tea.KeyMsg{Type: tea.KeyEnd}
		}
		r.send(m)
	}
}

func (r *run) observe(states ...shaper.State) { r.send(observed{states: states, began: epoch}) }

// shown checks that the view fills the window exactly, and returns it.
func (r *run) shown() string {
	r.Helper()
	v := r.View()
	lines := strings.Split(v, "\n")
	if len(lines) != r.height {
		r.Errorf("%d lines in a window of %d:\n%s", len(lines), r.height, v)
	}
	for _, l := range lines {
		if lipgloss.Width(l) > r.width {
			r.Errorf("a line of %d cells in a window of %d: %q", lipgloss.Width(l), r.width, l)
		}
	}
	return v
}

func TestScreen(t *testing.T) {
	r := newRun(t, 80, 24)
	if !strings.Contains(r.shown(), "reading") {
		t.Errorf("before the first observation:\n%s", r.View())
	}
	r.observe()
	if !strings.Contains(r.shown(), "No device has bandwidth groups") {
		t.Errorf("without devices:\n%s", r.View())
	}
	s := newServer()
	r.observe(s.at(1))
	golden.Compare(t, filepath.Join("testdata", "screen-first.txt"), r.shown())
	for i := 2; i < 6; i++ {
		r.observe(s.at(i))
	}
	golden.Compare(t, filepath.Join("testdata", "screen-80x24.txt"), r.shown())
	r.keys("?")
	golden.Compare(t, filepath.Join("testdata", "screen-help.txt"), r.shown())
	r.keys("?", "s")
	if !strings.Contains(r.shown(), "by rate") {
		t.Errorf("after s:\n%s", r.View())
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 60, Height: 10}, {Width: 300, Height: 80}, {Width: 20, Height: 3}} {
		r.send(size)
		r.shown()
	}
}

func TestPause(t *testing.T) {
	r := newRun(t, 100, 24)
	s := newServer()
	r.observe(s.at(1))
	r.observe(s.at(2))
	r.keys("p")
	before := r.shown()
	if !strings.Contains(before, "paused") {
		t.Errorf("the paused view does not show it:\n%s", before)
	}
	r.observe(s.at(3))
	if r.shown() != before {
		t.Errorf("the paused view changes:\n%s", r.View())
	}
	r.keys("p")
	if n := len(row(t, r.frame, "out", "storage").History); n != 2 {
		t.Errorf("%d rates after the pause, want 2: counters must continue", n)
	}
}

func TestNextDevice(t *testing.T) {
	r := newRun(t, 100, 40)
	states := []shaper.State{newServer().at(1), newServer().at(1)}
	states[1].Dev = "eth1"
	r.observe(states...)
	var seen []string
	for range 4 {
		seen = append(seen, r.focus)
		r.keys("d")
		v := r.shown()
		if r.focus == "eth1" && (!strings.Contains(v, "only eth1") || strings.Contains(v, "eth0")) {
			t.Errorf("with only eth1:\n%s", v)
		}
	}
	if got := strings.Join(seen, ","); got != ",eth0,eth1," {
		t.Errorf("d goes through %q", got)
	}
}

func TestScroll(t *testing.T) {
	r := newRun(t, 80, 10)
	s := newServer()
	for i := range 50 {
		s.out.Nodes = append(s.out.Nodes, group.Node{Path: fmt.Sprintf("g%d", i), Parent: -1, Depth: 1, Leaf: true, Ceiling: 100 * unit.Mbit})
	}
	r.observe(s.at(1))
	r.observe(s.at(2))
	if !strings.Contains(r.shown(), "lines 1-8 of 63") {
		t.Errorf("the top:\n%s", r.View())
	}
	r.keys("down", "pgdown")
	if !strings.Contains(r.shown(), "lines 9-16 of 63") {
		t.Errorf("a page and a line down:\n%s", r.View())
	}
	r.keys("end", "down")
	if !strings.Contains(r.shown(), "lines 56-63 of 63") {
		t.Errorf("the end:\n%s", r.View())
	}
	// With fewer groups, the offset must not exceed the last line.
	r.observe(newServer().at(3))
	r.shown()
}

func TestErrorsAreShown(t *testing.T) {
	r := newRun(t, 80, 24)
	r.observe(newServer().at(1))
	r.send(observed{err: errors.New("the kernel refused"), began: epoch})
	if v := r.shown(); !strings.Contains(v, "the kernel refused") || !strings.Contains(v, "storage") {
		t.Errorf("an error hides the last frame:\n%s", v)
	}
}

func TestQuit(t *testing.T) {
	for _, k := range []tea.KeyMsg{{Type: tea.KeyCtrlC}, {Type: tea.KeyRunes, Runes: []rune("q")}, {Type: tea.KeyEsc}} {
		cmd := newRun(t, 80, 24).send(k)
		if cmd == nil {
			t.Fatalf("%v does not quit", k)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%v does not quit", k)
		}
	}
}
