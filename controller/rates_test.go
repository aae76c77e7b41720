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
