package lab

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/wire"
)

// Lateness before a run does not count against it, and does not hide lateness within it.
func TestDistrust(t *testing.T) {
	before := wire.Stats{LateBound: time.Millisecond, Writes: 5000, Late: 50, VeryLate: 2, WorstLate: 90 * time.Millisecond, Missed: 3, Untraced: 4}
	for name, c := range map[string]struct {
		change func(*wire.Stats)
		want   string
	}{
		"nothing":        {func(s *wire.Stats) {}, ""},
		"one percent":    {func(s *wire.Stats) { s.Late += 100 }, ""},
		"more":           {func(s *wire.Stats) { s.Late += 101 }, "101 of 10000 writes were late by more than 1ms"},
		"once very late": {func(s *wire.Stats) { s.Late++; s.VeryLate++; s.WorstLate = 300 * time.Millisecond }, "late by 300ms, more than the limit of 200ms"},
		"later before":   {func(s *wire.Stats) { s.Late++; s.VeryLate++ }, "late by more than 200ms"},
		"lost":           {func(s *wire.Stats) { s.Missed++; s.Failed++ }, "lost 2 frames"},
		"untraced":       {func(s *wire.Stats) { s.Untraced++ }, "lacks 1 records"},
	} {
		after := before
		after.Writes += 10_000
		c.change(&after)
		if got := distrust(before, after); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
