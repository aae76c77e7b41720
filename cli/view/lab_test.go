package view

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
)

// The live view of a lab fills its window and no more, shows what it was sent,
// scrolls, and asks once for the end when q is typed.
func TestLabScreen(t *testing.T) {
	stopped := 0
	var m tea.Model = NewLabScreen("demo", 60, plainTheme(), func() { stopped++ })
	send := func(msg tea.Msg) (cmd tea.Cmd) { m, cmd = m.Update(msg); return cmd }
	shown := func(width, height int) string {
		t.Helper()
		v := m.View()
		lines := strings.Split(v, "\n")
		if len(lines) != height {
			t.Errorf("%d lines in a window of %d:\n%s", len(lines), height, v)
		}
		for _, l := range lines {
			if lipgloss.Width(l) > width {
				t.Errorf("%q is wider than %d", l, width)
			}
		}
		return v
	}
	send(tea.WindowSizeMsg{Width: 120, Height: 12})
	if v := shown(120, 12); !strings.Contains(v, "lab demo  starting") {
		t.Errorf("before the first sample:\n%s", v)
	}
	frame := LabFrame{
		Lab: "demo", Seconds: 3, Length: 60, Events: []string{"2.0 s, start bulk"},
		Flows: []LabFlow{{Name: "bulk", Way: "a > b", Offered: 1e8, Delivered: 95.5e6, Lost: 7, SRTTus: 20_500}},
		Links: []LabLink{{Name: "wan", Way: "a > b", Rate: 99e6, Dropped: 3}, {Name: "wan", Way: "b > a"}},
	}
	send(frame)
	frame.Seconds, frame.Flows[0].Delivered = 4, 40e6
	send(frame)
	v := shown(120, 12)
	for _, want := range []string{"lab demo  4 of 60 s", "40.0Mbit", "20.5ms", "99.0Mbit", "█▄", "last event: 2.0 s, start bulk"} {
		if !strings.Contains(v, want) {
			t.Errorf("there is no %q in\n%s", want, v)
		}
	}
	send(tea.WindowSizeMsg{Width: 40, Height: 5})
	if v := shown(40, 5); !strings.Contains(v, "bulk") || strings.Contains(v, "wan") {
		t.Errorf("in a small window:\n%s", v)
	}
	for range 9 {
		send(tea.KeyMsg{Type: tea.KeyDown})
	}
	if v := shown(40, 5); strings.Contains(v, "bulk") || strings.Count(v, "wan") != 2 {
		t.Errorf("scrolled:\n%s", v)
	}
	if cmd := send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")}); cmd != nil || stopped != 1 || !strings.Contains(shown(40, 5), "stopping") {
		t.Errorf("q: command %v, stopped %d times", cmd, stopped)
	}
	if cmd := send(LabOver{}); cmd == nil {
		t.Error("the end of the run does not end the view")
	}
}
