package usage

import (
	"testing"
	"time"

	"headgate/unit"
)

var (
	began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	later = began.Add(time.Second)
)

// A second of four groups: who waits and gets too little was not met, who leaves some lends as much
// as others borrow.
func TestAccount(t *testing.T) {
	before := map[string]Counters{
		"out/short": {At: began, Bytes: 1000, Packets: 1, Backlog: 9000}, "out/idle": {At: began}, "out/greedy": {At: began, Bytes: 500, Backlog: 1},
		"out/anew": {At: began, Bytes: 1e6, Packets: 1000},
	}
	now := []Group{
		{"out/short", true, 8 * unit.Mbit, Counters{At: later, Bytes: 501_000, Packets: 501, Backlog: 19_000, Drops: 10, Marks: 3, QueuedFor: time.Second, Queued: 500_000}, 0},
		{"out/idle", true, 8 * unit.Mbit, Counters{At: later}, 0},
		{"out/greedy", true, 8 * unit.Mbit, Counters{At: later, Bytes: 1_500_500, Packets: 1500, Backlog: 1}, 0},
		{"out/anew", true, 0, Counters{At: later, Bytes: 200, Packets: 2}, 0},
		{"out/new", true, 0, Counters{At: later, Bytes: 100, Packets: 2}, 0},
	}
	got := Account(before, now)
	for name, want := range map[string]Usage{
		"out/short":  {Seconds: 1, Offered: 510_000, Delivered: 500_000, Guaranteed: 1e6, Drops: 10, Marks: 3, Unmet: 1},
		"out/idle":   {Seconds: 1, Guaranteed: 1e6},
		"out/greedy": {Seconds: 1, Offered: 1_500_000, Delivered: 1_500_000, Guaranteed: 1e6, Borrowed: 500_000},
		"out/anew":   {Seconds: 1, Offered: 200, Delivered: 200, Borrowed: 200},
		"out/new":    {Seconds: 1, Offered: 100, Delivered: 100, Borrowed: 100},
	} {
		u := got[name]
		u.Lent = 0
		if name == "out/short" { // and ten packets of 1,000 bytes that were dropped
			want.Offered += 10_000
		}
		if u != want {
			t.Errorf("%s: %+v, want %+v", name, u, want)
		}
	}
	// 1.5 MB were left, 0.5 MB borrowed: a third of what each left.
	if s, i := got["out/short"].Lent, got["out/idle"].Lent; s < 166_000 || s > 168_000 || i < 333_000 || i > 334_000 {
		t.Errorf("lent are %d and %d, want a third of 0.5 and 1 MB", s, i)
	}
}

// What is a queue that stands, of a group with a guarantee of a megabyte a second.
func TestUnmet(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		was, now Counters // without times
		unmet    bool
	}{
		"no queue":                         {Counters{}, Counters{Bytes: 500_000}, false},
		"something waits at two instants":  {Counters{Backlog: 9000}, Counters{Bytes: 800_000, Backlog: 9000, QueuedFor: 700 * ms, Queued: 700_000}, false},
		"nearly always, served in time":    {Counters{Backlog: 9000}, Counters{Bytes: 950_000, Backlog: 9000, QueuedFor: 950 * ms, Queued: 950_000}, false},
		"half, with a queue all the time":  {Counters{Backlog: 9000}, Counters{Bytes: 500_000, Backlog: 9000, QueuedFor: 980 * ms, Queued: 490_000}, true},
		"a tenth, told by a stamp in time": {Counters{Backlog: 9000}, Counters{Bytes: 100_000, Backlog: 9000, QueuedFor: 800 * ms, Queued: 80_000}, true},
		"nothing at all":                   {Counters{Backlog: 9000}, Counters{Backlog: 9000}, true},
		"not what waited":                  {Counters{Backlog: 90_000}, Counters{Bytes: 50_000, Backlog: 90_000}, true},
		"what waited, and no more":         {Counters{Backlog: 9000}, Counters{Bytes: 9000, Backlog: 1000}, false},
		"all, with a queue all the time":   {Counters{Backlog: 9000}, Counters{Bytes: 980_000, Backlog: 9000, QueuedFor: 990 * ms, Queued: 970_000}, false},
		"made anew":                        {Counters{Bytes: 1e6, Backlog: 9000}, Counters{Bytes: 100, Backlog: 9000}, false},
	} {
		c.was.At, c.now.At = began, later
		if got := Unmet(c.was, c.now, 8*unit.Mbit); got != c.unmet {
			t.Errorf("%s: unmet is %v, want %v", name, got, c.unmet)
		}
	}
}

// A rate is over the time between the two readings.
func TestRate(t *testing.T) {
	was := Counters{At: began, Bytes: 1000}
	for want, now := range map[float64]Counters{
		8000: {At: later, Bytes: 2000},
		4000: {At: later.Add(time.Second), Bytes: 2000},
		0:    {At: began, Bytes: 2000},
	} {
		if got := Rate(was, now); got != want {
			t.Errorf("from %v to %v there are %v bit/s, want %v", was, now, got, want)
		}
	}
}

// Readings ten times a second are judged by the second.
func TestMeter(t *testing.T) {
	var m Meter
	for tenth := range 31 {
		now := Counters{At: began.Add(time.Duration(tenth) * 100 * time.Millisecond), Bytes: uint64(50_000 * tenth), Backlog: 90_000,
			QueuedFor: time.Duration(tenth) * 100 * time.Millisecond, Queued: uint64(50_000 * tenth)}
		m.Take(map[string][]Group{"eth0": {{Name: "out/a", Guarantee: 8 * unit.Mbit, Counters: now}, {Name: "out/b", Guarantee: 2 * unit.Mbit, Counters: now}}})
	}
	if a, b := m.Unmet("eth0", "out/a"), m.Unmet("eth0", "out/b"); a < 2.6 || a > 3.1 || b != 0 {
		t.Errorf("half of a guarantee for 3 s is unmet for %v s, and all of another for %v", a, b)
	}
	m.Take(nil)
	if a := m.Unmet("eth0", "out/a"); a != 0 {
		t.Errorf("a device that is gone has %v", a)
	}
}
