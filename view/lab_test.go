package view

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"headgate.dev/headgate/lab/report"
)

// The live view of a lab fills its window exactly, shows the last frame, scrolls, and calls stop
// once for the key q.
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
	frame := report.Frame{
		Lab: "demo", Seconds: 3, Length: 60, Events: []string{"2.0 s, start bulk"},
		Flows: []report.Flow{{Name: "bulk", Direction: "a > b", Offered: 1e8, Delivered: 95.5e6, Lost: 7, SRTTus: 20_500}},
		Links: []report.Link{{Name: "wan", Way: "a > b", Rate: 99e6, Dropped: 3}, {Name: "wan", Way: "b > a"}},
	}
	send(frame)
	frame.Seconds, frame.Flows[0].Delivered = 4, 40e6
	send(frame)
	v := shown(120, 12)
	for _, want := range []string{"lab demo  4 of 60 s", "40.0Mbit", "20.5ms", "99.0Mbit", "█▄", "last event: 2.0 s, start bulk"} {
		if !strings.Contains(v, want) {
			t.Errorf("missing %q in\n%s", want, v)
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
	if cmd := send(LabDone{}); cmd == nil {
		t.Error("LabOver does not end the view")
	}
}

// Requests, transfers, windows and jitter are shown if a flow has them. Windows and jitter are left
// out in a narrow window.
func TestLabScreenApplications(t *testing.T) {
	var m tea.Model = NewLabScreen("demo", 0, plainTheme(), func() {})
	frame := report.Frame{
		Lab: "demo", Seconds: 3,
		Flows: []report.Flow{
			{Name: "web", Direction: "a > b", Delivered: 2e6, SRTTus: 20_500, Cwnd: 77},
			{Name: "voice", Direction: "a > b", Delivered: 1e5, Jitter: 310 * time.Microsecond},
		},
		Requests: []report.Requests{
			{Name: "web", Done: 48.4, Refused: 3, Failed: 1, UnderWay: 5, Backlog: 12, P50: 21 * time.Millisecond, P99: 240 * time.Millisecond},
			{Name: "stuck"},
		},
		Transfers: []report.Transfer{{Name: "backup", Completed: 1, Times: 3, Failed: 1, Last: 1210 * time.Millisecond, Arrived: 0.43}},
	}
	show := func(width int) string {
		m, _ = m.Update(tea.WindowSizeMsg{Width: width, Height: 16})
		m, _ = m.Update(frame)
		v := m.View()
		for _, l := range strings.Split(v, "\n") {
			if lipgloss.Width(l) > width {
				t.Errorf("%q is wider than %d", l, width)
			}
		}
		return v
	}
	const requests = `
REQUESTS                DONE/S       P50       P99   REFUSED    FAILED UNDER WAY   BACKLOG
web                         48    21.0ms     240ms         3         1         5        12
stuck                        0                             0         0         0         0

TRANSFERS                 DONE    FAILED LAST TIME   ARRIVED
backup                  1 of 3         1     1.21s       43%
`
	wide := show(120)
	for _, want := range []string{"3 s, until all transfers end", "SRTT   CWND  JITTER  HISTORY", "20.5ms     77", "310us", requests} {
		if !strings.Contains(wide, want) {
			t.Errorf("missing %q in\n%s", want, wide)
		}
	}
	if narrow := show(100); strings.Contains(narrow, "CWND") || !strings.Contains(narrow, "HISTORY") {
		t.Errorf("in a narrow window:\n%s", narrow)
	}
	frame = report.Frame{Lab: "demo", Seconds: 3, Flows: []report.Flow{{Name: "plain"}}}
	if plain := show(120); strings.Contains(plain, "JITTER") || strings.Contains(plain, "REQUESTS") || strings.Contains(plain, "TRANSFERS") {
		t.Errorf("a lab of plain flows:\n%s", plain)
	}
}
