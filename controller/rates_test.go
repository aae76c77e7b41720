package controller

import (
	"testing"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/unit"
)

// A rate is computed between two counter readings: a report without a new reading changes nothing, and
// groups that remain keep their rates when others are added.
func TestRate(t *testing.T) {
	l := &link{tables: map[string]*table{}}
	report := func(at int64, names []string, bytes ...uint64) {
		l.report(&agents.Report{AtNs: at * 1e9, Devices: []*agents.DeviceReport{{Dev: "eth0", Names: names, GuaranteeBps: make([]uint64, len(names)), Bytes: bytes}}})
	}
	rates := func(when string, want ...unit.Rate) {
		t.Helper()
		for n, w := range want {
			if got := l.tables["eth0"].rate(n); got != w {
				t.Errorf("%s: group %d has the rate %v, want %v", when, n, got, w)
			}
		}
	}
	report(10, []string{"out/a", "out/b"}, 1000, 500)
	rates("first report", 0, 0)
	report(11, nil, 2000, 500)
	rates("a second later", 8000, 0)
	report(11, nil, 2000, 500)
	rates("same reading again", 8000, 0)
	report(11, []string{"out/c", "out/a"}, 0, 2000)
	rates("a new group", 0, 8000)
	report(12, nil, 100, 4000)
	rates("a second after that", 800, 16000)
	report(13, nil, 50, 4000)
	rates("a counter that was reset", 400, 0)
}

// A group with a backlog in two reports counts as served with its guarantee, unless its queue was
// never empty meanwhile and drained more slowly. A rate is over the time between the readings of the
// group's own counters.
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
	want("first report", 0, false)
	report(11_000, 0, 1.8e6, 700, 0.7e6)
	want("backlog, served with the guarantee", 6400*unit.Kbit, false)
	report(12_000, 0, 2.3e6, 1690, 1.19e6)
	want("standing queue, served with half of the guarantee", 4*unit.Mbit, true)
	report(12_100, 0, 2.5e6, 1690, 1.19e6)
	want("a tenth of a second later", 16*unit.Mbit, true)
	report(13_000, 250, 3.5e6, 1690, 1.19e6)
	want("read late", 6956521, false)
}
