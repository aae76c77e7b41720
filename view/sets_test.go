package view

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/collective/host"
)

// twoTo1 returns a set after this many seconds: 4 and 2 Mbit/s, with learned rates of 4.8 and 2.4.
func twoTo1(seconds int) []host.State {
	bytes := func(mbit int) uint64 { return uint64(seconds * mbit * 1e6 / 8) }
	return []host.State{{
		Set: "db", At: time.Duration(seconds) * time.Second, Controlling: true, Resent: 0.003, ResentBefore: 0.12,
		Connections: []host.ConnectionState{
			{ID: 1, Local: "10.0.0.1:5432", Remote: "10.0.1.1:40000", Needs: 4_800_000, Rate: 4_000_000, Acked: bytes(4), Pace: 4_000_000, RTT: 24 * time.Millisecond},
			{ID: 2, Local: "10.0.0.1:5432", Remote: "10.0.1.2:40000", Needs: 2_400_000, Window: 30 << 10, Rate: 2_000_000, Acked: bytes(2), Retransmits: uint32(3 * seconds), RTT: 25 * time.Millisecond},
		},
	}}
}

// Rates and shares are computed between two observations. A line has them beside learned rates and targets.
func TestSetLines(t *testing.T) {
	var tracker SetTracker
	tracker.Update(twoTo1(10))
	lines := SetLines(tracker.Update(twoTo1(12)), plainTheme(), 200)
	for i, want := range []string{
		"db controlled for 12s, 6.00Mbit of 7.20Mbit, retransmitted 0.30% (before 12.0%)",
		"CONNECTION STATE LEARNED RATE SHARE TARGET CAP RTT RETX/s LAST 60 SHARES",
		"10.0.0.1:5432 10.0.1.1:40000 capped 4.80Mbit 4.00Mbit 66.7% 66.7% 4.00Mbit 24.0ms 0 ▅",
		"10.0.0.1:5432 10.0.1.2:40000 capped 2.40Mbit 2.00Mbit 33.3% 33.3% 30.0KiB 25.0ms 3.0 ▅",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d is %q, want %q", i+1, got, want)
		}
	}
	for _, line := range SetLines(tracker.Update(twoTo1(14)), plainTheme(), 40) {
		if len(line) > 40 {
			t.Errorf("%q is longer than 40", line)
		}
	}
}

// The condition "capped" has priority over "idle".
func TestCondition(t *testing.T) {
	for _, c := range []struct {
		of   host.ConnectionState
		want string
	}{
		{host.ConnectionState{Needs: 1, Rate: 1, Pace: 1}, "capped"},
		{host.ConnectionState{Needs: 1, Window: 1}, "capped"},
		{host.ConnectionState{Needs: 1}, "idle"},
		{host.ConnectionState{}, "idle"},
		{host.ConnectionState{Rate: 1}, "learning"},
		{host.ConnectionState{Rate: 1, Weight: 2}, "uncapped"},
		{host.ConnectionState{Rate: 1, Needs: 1}, "uncapped"},
	} {
		if got := (SetMember{ConnectionState: c.of}).Condition(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.of, got, c.want)
		}
	}
}

// The screen fills its window, does not change while paused, and quits with q.
func TestSetScreen(t *testing.T) {
	var m tea.Model = NewSetScreen(nil, time.Second, plainTheme())
	m, _ = m.Update(tea.WindowSizeMsg{Width: 120, Height: 6})
	var tracker SetTracker
	for i := range 3 {
		m, _ = m.Update(observation[[]Set]{state: tracker.Update(twoTo1(10 + i))})
	}
	before := m.View()
	if n := strings.Count(before, "\n"); n != 5 || !strings.Contains(before, "controlled for 12s") {
		t.Errorf("%d lines: %s", n+1, before)
	}
	m, _ = m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("p")})
	m, _ = m.Update(observation[[]Set]{state: tracker.Update(twoTo1(13))})
	if now := m.View(); !strings.Contains(now, "controlled for 12s") || !strings.Contains(now, "paused") {
		t.Errorf("the paused screen is %s", now)
	}
	if _, end := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")}); end == nil {
		t.Error("q does not quit")
	}
}
