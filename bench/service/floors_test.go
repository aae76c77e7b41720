package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// A run that did not produce the load of its row fails.
func TestFloors(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"all answered, and full":         {burst(1000, 0, capacity), true},
		"none answered":                  {burst(0, 0, 0), false},
		"one too few answered":           {burst(minAnswered-1, 0, capacity), false},
		"not filled":                     {burst(1000, 0, capacity-unit.Mbit), false},
		"not filled, by a wrong refusal": {burst(1000, 1, capacity-unit.Mbit), true},
		"1 Gbit/s":                       {loaded(960e6), true},
		"half of it":                     {loaded(500e6), false},
	} {
		if (c.err == nil) != c.want {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// Each watcher must be open, and must have received a change.
func TestWatchersServed(t *testing.T) {
	w := &watching{each: make([]watcher, 3)}
	for i := range w.each {
		w.each[i].open.Store(true)
		w.each[i].changes.Store(1)
	}
	if err := w.served(); err != nil {
		t.Error(err)
	}
	w.each[1].changes.Store(0)
	if err := w.served(); err == nil {
		t.Error("a watcher without a change is accepted")
	}
	w.each[1].changes.Store(1)
	w.each[2].end(errors.New("gone"))
	if err := w.served(); err == nil {
		t.Error("an ended stream is accepted")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.open(ctx); err == nil {
		t.Error("a stream that is not open is accepted")
	}
}

// The seconds must be equal, not only their number.
func TestUnmetSeconds(t *testing.T) {
	told := seconds{}
	before := map[string]int64{"out/web": 1}
	for _, reading := range []struct{ second, unmet int64 }{{100, 1}, {101, 2}, {102, 3}, {103, 3}, {105, 5}} {
		now := map[string]int64{"out/web": reading.unmet}
		maps.Copy(told, more(before, now, reading.second)["out/web"])
		before = now
	}
	if want := (seconds{100: true, 101: true, 103: true, 104: true}); !maps.Equal(told, want) {
		t.Errorf("told are %v, want %v", told, want)
	}
	for _, c := range []struct {
		made seconds
		want []int64
	}{
		{seconds{100: true, 101: true, 103: true, 104: true}, nil},
		{seconds{101: true, 102: true, 103: true, 104: true}, []int64{100, 102}},
		{nil, []int64{100, 101, 103, 104}},
	} {
		if got := told.differs(c.made); !slices.Equal(got, c.want) {
			t.Errorf("made %v: others are %v, want %v", c.made, got, c.want)
		}
	}
}

// A second with a higher rate than that of the group is detected, and one with a lower rate, unless
// the sender stalled.
func TestNotHeld(t *testing.T) {
	began := time.Now()
	looks := []heldLook{{at: began}}
	for n, rate := range []float64{1, 1, 3, 1, 0, 0, 1} {
		sent := looks[n].sent + uint64(rate*float64(heldRate)/8)
		looks = append(looks, heldLook{at: began.Add(time.Duration(n+1) * time.Second), sent: sent})
	}
	never := func(_, _ time.Time) time.Duration { return 0 }
	stood := func(_, to time.Time) time.Duration { return to.Sub(began.Add(4500 * time.Millisecond)) }
	for name, c := range map[string]struct {
		looks       []heldLook
		stood       func(from, to time.Time) time.Duration
		wrong, seen int
	}{
		"as it should":       {looks[:3], never, 0, 2},
		"more":               {looks[:4], never, 1, 3},
		"more, and nothing":  {looks, never, 3, 7},
		"the sender's fault": {looks, stood, 1, 5},
		"nothing seen":       {looks[:1], never, 0, 0},
	} {
		if wrong, seen := notHeld(c.looks, c.stood); len(wrong) != c.wrong || seen != c.seen {
			t.Errorf("%s: %v of %d, want %d of %d", name, wrong, seen, c.wrong, c.seen)
		}
	}
}
