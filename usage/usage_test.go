package usage

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

var (
	began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	later = began.Add(time.Second)
)

// TestAccount checks one second of a limit of 32 Mbit/s: a queue that is served below its guarantee is unmet,
// and unused guarantees and unallocated bandwidth are lent alike.
func TestAccount(t *testing.T) {
	before := map[string]Counters{
		"short": {At: began, Bytes: 1000, Packets: 1, Backlog: 9000}, "idle": {At: began}, "greedy": {At: began, Bytes: 500, Backlog: 1},
		"anew": {At: began, Bytes: 1e6, Packets: 1000}, ControlPath: {At: began},
	}
	now := Direction{Name: "out", Limit: 32 * unit.Mbit, Control: Counters{At: later}, Groups: []Group{
		{"short", -1, true, 8 * unit.Mbit, Counters{At: later, Bytes: 501_000, Packets: 501, Backlog: 19_000, Drops: 10, Marks: 3, QueuedFor: time.Second, Queued: 500_000}, 0},
		{"idle", -1, true, 8 * unit.Mbit, Counters{At: later}, 0},
		{"greedy", -1, true, 8 * unit.Mbit, Counters{At: later, Bytes: 1_500_500, Packets: 1500, Backlog: 1}, 0},
		{"anew", -1, true, 0, Counters{At: later, Bytes: 200, Packets: 2}, 0},
		{"new", -1, true, 0, Counters{At: later, Bytes: 100, Packets: 2}, 0},
	}}
	got := Account(before, now)
	for n, want := range []Usage{
		{Seconds: 1, Offered: 520_000, Delivered: 500_000, Guaranteed: 1e6, Drops: 10, Marks: 3, Unmet: 1}, // with ten dropped packets of 1,000 bytes
		{Seconds: 1, Guaranteed: 1e6},
		{Seconds: 1, Offered: 1_500_000, Delivered: 1_500_000, Guaranteed: 1e6, Borrowed: 500_000},
		{Seconds: 1, Offered: 200, Delivered: 200, Borrowed: 200},
		{Seconds: 1, Offered: 100, Delivered: 100, Borrowed: 100},
	} {
		u := got[n]
		u.Lent = 0
		if u != want {
			t.Errorf("%s: %+v, want %+v", now.Groups[n].Path, u, want)
		}
	}
	// 1.5 MB were unused and 1 MB unallocated, 0.5 MB borrowed: a fifth of each.
	if short, idle := got[0].Lent, got[1].Lent; short < 100_000 || short > 100_100 || idle < 200_000 || idle > 200_200 {
		t.Errorf("short and idle lent %d and %d, want a fifth of 0.5 and 1 MB", short, idle)
	}
}

// TestLending checks who lends in a tree, in Mbit/s.
func TestLending(t *testing.T) {
	group := func(path string, parent int, leaf bool, guarantee unit.Rate) Group {
		return Group{Path: path, Parent: parent, Leaf: leaf, Guarantee: guarantee * unit.Mbit}
	}
	tree := []Group{
		group("idle", -1, true, 40), group("half", -1, true, 30), group("busy", -1, true, 20),
		group("tenant", -1, false, 10), group("tenant/a", 3, true, 8), group("tenant/b", 3, true, 2),
	}
	for _, c := range []struct {
		name           string
		limit          unit.Rate
		rates          []uint64
		control        uint64
		borrowed, lent []uint64
	}{
		{"no group borrows", 100, []uint64{0, 15, 20, 10, 8, 2}, 0, []uint64{0, 0, 0, 0, 0, 0}, []uint64{0, 0, 0, 0, 0, 0}},
		{"all is used", 100, []uint64{0, 10, 80, 10, 8, 2}, 0, []uint64{0, 0, 60, 0, 0, 0}, []uint64{40, 20, 0, 0, 0, 0}},
		{"control takes a part", 100, []uint64{0, 30, 58, 10, 8, 2}, 2, []uint64{0, 0, 38, 0, 0, 0}, []uint64{38, 0, 0, 0, 0, 0}},
		{"half is used", 100, []uint64{0, 10, 50, 10, 8, 2}, 0, []uint64{0, 0, 30, 0, 0, 0}, []uint64{20, 10, 0, 0, 0, 0}},
		{"half is unallocated", 160, []uint64{0, 30, 50, 10, 8, 2}, 0, []uint64{0, 0, 30, 0, 0, 0}, []uint64{12, 0, 0, 0, 0, 0}},
		{"the limit is not known", 0, []uint64{0, 30, 50, 10, 8, 2}, 0, []uint64{0, 0, 30, 0, 0, 0}, []uint64{30, 0, 0, 0, 0, 0}},
		{"siblings lend to each other first", 100, []uint64{0, 30, 20, 10, 3, 7}, 0, []uint64{0, 0, 0, 0, 0, 5}, []uint64{0, 0, 0, 0, 5, 0}},
		{"a tenant borrows for its children", 100, []uint64{0, 30, 20, 50, 8, 42}, 0, []uint64{0, 0, 0, 40, 0, 40}, []uint64{40, 0, 0, 0, 0, 0}},
	} {
		now := Direction{Limit: c.limit * unit.Mbit, Control: Counters{At: later, Bytes: c.control * 1e6 / 8}}
		before := map[string]Counters{ControlPath: {At: began}}
		for n, g := range tree {
			before[g.Path] = Counters{At: began}
			g.Counters = Counters{At: later, Bytes: c.rates[n] * 1e6 / 8}
			if !g.Leaf {
				g.Bytes = 7 // what the engine counts for a parent does not matter
			}
			now.Groups = append(now.Groups, g)
		}
		for n, u := range Account(before, now) {
			delivered, borrowed, lent := u.Rate(u.Delivered), u.Rate(u.Borrowed), u.Rate(u.Lent)
			off := func(got float64, want uint64) bool { return math.Abs(got-float64(want*1e6)) > 16 } // bytes are whole
			if off(delivered, c.rates[n]) || off(borrowed, c.borrowed[n]) || off(lent, c.lent[n]) {
				t.Errorf("%s: %s has %v, borrows %v and lends %v", c.name, tree[n].Path, delivered, borrowed, lent)
			}
		}
	}
}

// Which queues count as standing, for a group with a guarantee of 1 MB/s.
func TestUnmet(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		was, now Counters // without times
		unmet    bool
	}{
		"no queue":                            {Counters{}, Counters{Bytes: 500_000}, false},
		"backlog at two instants":             {Counters{Backlog: 9000}, Counters{Bytes: 800_000, Backlog: 9000, QueuedFor: 700 * ms, Queued: 700_000}, false},
		"nearly always queued, guarantee met": {Counters{Backlog: 9000}, Counters{Bytes: 950_000, Backlog: 9000, QueuedFor: 950 * ms, Queued: 950_000}, false},
		"half, always queued":                 {Counters{Backlog: 9000}, Counters{Bytes: 500_000, Backlog: 9000, QueuedFor: 980 * ms, Queued: 490_000}, true},
		"a tenth, with few timestamps":        {Counters{Backlog: 9000}, Counters{Bytes: 100_000, Backlog: 9000, QueuedFor: 800 * ms, Queued: 80_000}, true},
		"nothing leaves":                      {Counters{Backlog: 9000}, Counters{Backlog: 9000}, true},
		"less than the backlog leaves":        {Counters{Backlog: 90_000}, Counters{Bytes: 50_000, Backlog: 90_000}, true},
		"only the backlog leaves":             {Counters{Backlog: 9000}, Counters{Bytes: 9000, Backlog: 1000}, false},
		"nearly all, always queued":           {Counters{Backlog: 9000}, Counters{Bytes: 980_000, Backlog: 9000, QueuedFor: 990 * ms, Queued: 970_000}, false},
		"recreated":                           {Counters{Bytes: 1e6, Backlog: 9000}, Counters{Bytes: 100, Backlog: 9000}, false},
	} {
		c.was.At, c.now.At = began, later
		if got := Unmet(c.was, c.now, 8*unit.Mbit); got != c.unmet {
			t.Errorf("%s: unmet is %v, want %v", name, got, c.unmet)
		}
	}
}

// A rate is computed over the time between the two readings.
func TestRate(t *testing.T) {
	was := Counters{At: began, Bytes: 1000}
	for want, now := range map[float64]Counters{
		8000: {At: later, Bytes: 2000},
		4000: {At: later.Add(time.Second), Bytes: 2000},
		0:    {At: began, Bytes: 2000},
	} {
		if got := Rate(was, now); got != want {
			t.Errorf("rate from %v to %v is %v bit/s, want %v", was, now, got, want)
		}
	}
}

// Readings every 0.1 s are evaluated per second.
func TestMeter(t *testing.T) {
	var m Meter
	for tenth := range 31 {
		now := Counters{At: began.Add(time.Duration(tenth) * 100 * time.Millisecond), Bytes: uint64(50_000 * tenth), Backlog: 90_000,
			QueuedFor: time.Duration(tenth) * 100 * time.Millisecond, Queued: uint64(50_000 * tenth)}
		m.Take(map[string][]Direction{"eth0": {{Name: "out", Groups: []Group{{Path: "a", Guarantee: 8 * unit.Mbit, Counters: now}, {Path: "b", Guarantee: 2 * unit.Mbit, Counters: now}}}}})
	}
	if a, b := m.Unmet("eth0", "out/a"), m.Unmet("eth0", "out/b"); a < 2.6 || a > 3.1 || b != 0 {
		t.Errorf("a half-met guarantee was unmet for %v s of 3, a met one for %v", a, b)
	}
	m.Take(nil)
	if a := m.Unmet("eth0", "out/a"); a != 0 {
		t.Errorf("a removed device has %v", a)
	}
}
