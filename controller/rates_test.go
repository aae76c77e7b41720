package controller

import (
	"testing"

	"headgate/api/agents"
	"headgate/unit"
)

// A rate is between two countings: a report without a new one changes nothing, and groups that stay go on when
// others come.
func TestRate(t *testing.T) {
	l := &link{tables: map[string]*table{}}
	report := func(at int64, names []string, bytes ...uint64) {
		l.report(&agents.Report{AtNs: at * 1e9, Devices: []*agents.DeviceReport{{Dev: "eth0", Names: names, GuaranteeBps: make([]uint64, len(names)), Bytes: bytes}}})
	}
	rates := func(when string, want ...unit.Rate) {
		t.Helper()
		for n, w := range want {
			if got := l.tables["eth0"].rate(n); got != w {
				t.Errorf("%s: group %d has %v, want %v", when, n, got, w)
			}
		}
	}
	report(10, []string{"out/a", "out/b"}, 1000, 500)
	rates("at first", 0, 0)
	report(11, nil, 2000, 500)
	rates("a second later", 8000, 0)
	report(11, nil, 2000, 500)
	rates("with nothing counted since", 8000, 0)
	report(11, []string{"out/c", "out/a"}, 0, 2000)
	rates("with another group", 0, 8000)
	report(12, nil, 100, 4000)
	rates("a second after that", 800, 16000)
	report(13, nil, 50, 4000)
	rates("when one was made anew", 0, 0)
}

// A group that waits at two reports has its guarantee unless a queue stood that was served more slowly, and a
// rate is over the time between the readings of its own counters.
func TestAtRisk(t *testing.T) {
	l := &link{tables: map[string]*table{}}
	report := func(ms int64, readLate int64, bytes, queuedMs, queued uint64) {
		l.report(&agents.Report{AtNs: ms * 1e6, Devices: []*agents.DeviceReport{{
			Dev: "eth0", Names: map[bool][]string{true: {"out/a"}}[ms == 10_000], GuaranteeBps: map[bool][]uint64{true: {8e6}}[ms == 10_000], Bytes: []uint64{bytes}, BacklogBytes: []uint64{9000},
			QueuedNs: []uint64{queuedMs * 1e6}, QueuedBytes: []uint64{queued}, ReadAtNs: []int64{(ms + readLate) * 1e6},
		}}})
	}
	want := func(when string, rate unit.Rate, risk bool) {
		t.Helper()
		if r, a := l.tables["eth0"].rate(0), l.tables["eth0"].atRisk(0); r != rate || a != risk {
			t.Errorf("%s: a rate of %v, at risk %v; want %v, %v", when, r, a, rate, risk)
		}
	}
	report(10_000, 0, 1e6, 0, 0)
	want("at first", 0, false)
	report(11_000, 0, 1.8e6, 700, 0.7e6)
	want("something waits, and is served", 6400*unit.Kbit, false)
	report(12_000, 0, 2.3e6, 1690, 1.19e6)
	want("a queue stands, served by half", 4*unit.Mbit, true)
	report(12_100, 0, 2.5e6, 1690, 1.19e6)
	want("a tenth of a second later", 16*unit.Mbit, true)
	report(13_000, 250, 3.5e6, 1690, 1.19e6)
	want("read late", 6956521, false)
}
