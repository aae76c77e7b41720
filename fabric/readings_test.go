package fabric

import (
	"math"
	"testing"
	"time"
)

// The rate and the losses of a link, of which one end is read 370 ms after the other, and counts 4 bytes more of each frame.
func TestLinkLosses(t *testing.T) {
	const frame, perSecond = 1500, 4000 // 48 Mbit/s
	begin := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		seconds int
		arrives float64 // of the frames
		again   bool    // the counters begin again halfway
		ok      bool
	}{
		"nothing is lost":          {12, 1, false, true},
		"a third is lost":          {12, 2. / 3, false, true},
		"too few readings":         {9, 1, false, false},
		"the counters began again": {12, 1, true, false},
		"longer than what is kept": {60, 0.9, false, true},
		"nothing arrives":          {12, 0, false, true},
	} {
		var sends, receives PortMeter
		for s := range c.seconds {
			count := func(later time.Duration, part float64, bytes int) Counts {
				since := float64(s) + later.Seconds()
				if c.again && s >= c.seconds/2 {
					since -= float64(c.seconds / 2)
				}
				frames := uint64(part * perSecond * since)
				return Counts{frames * uint64(bytes), frames, Uncounted, Uncounted}
			}
			now, late := begin.Add(time.Duration(s)*time.Second), 370*time.Millisecond
			sends.Take(PortCounters{At: now, Tx: count(0, 1, frame)})
			receives.Take(PortCounters{At: now.Add(late), Rx: count(late, c.arrives, frame+4)})
		}
		sent, lost, ok := LinkLosses(sends.Readings(), receives.Readings(), 10*time.Second, 0)
		if ok != c.ok {
			t.Errorf("%s: known %v, want %v", name, ok, c.ok)
		}
		if ok && (math.Abs(sent-48e6) > 1e3 || math.Abs(lost-(1-c.arrives)) > 1e-3) {
			t.Errorf("%s: %.0f bit/s were sent and %.2f %% lost, want 48 Mbit/s and %.2f %%", name, sent, 100*lost, 100*(1-c.arrives))
		}
	}
}

// What passed between two moments, and when that is not known.
func TestReadingsBetween(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	var m PortMeter
	for s := range uint64(5) {
		m.Take(PortCounters{At: begin.Add(time.Duration(s) * time.Second), Rx: Counts{Bytes: 1000 * s * s, Frames: s * s}})
	}
	for name, c := range map[string]struct {
		from, to float64 // seconds
		bytes    float64
		ok       bool
	}{
		"of two readings":            {1, 3, 8000, true},
		"between readings":           {1.5, 2.5, 4000, true},
		"before the first":           {-1, 2, 0, false},
		"after the last":             {2, 5, 0, false},
		"from the first to the last": {0, 4, 16_000, true},
	} {
		at := func(s float64) time.Time { return begin.Add(time.Duration(s * 1e9)) }
		rx, _, ok := m.Readings().Between(at(c.from), at(c.to))
		if ok != c.ok || ok && (rx != Passed{c.bytes, c.bytes / 1000}) {
			t.Errorf("%s: %v, %v, want %v", name, rx, ok, c.bytes)
		}
	}
	uncounted := m.Last()
	uncounted.At, uncounted.Rx.Frames = uncounted.At.Add(time.Second), Uncounted
	m.Take(uncounted)
	if _, _, ok := m.Readings().Between(begin, begin); ok {
		t.Error("a port that does not count frames has readings")
	}
}
