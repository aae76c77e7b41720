package reserve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// lineBook is the book of two switches with one cable of 100 Mbit/s.
func lineBook(t testing.TB) *Book {
	b, err := NewBook(network(rand.New(rand.NewPCG(1, 1)), 2, 1, 100*unit.Mbit), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// smallNetwork draws a network with few switches and capacities, so that requests compete.
func smallNetwork(t *rapid.T) *Book {
	n := rapid.IntRange(2, 5).Draw(t, "switches")
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	top := network(rnd, n, n-1+rapid.IntRange(0, 4).Draw(t, "more cables"), 6, 10)
	links := slices.Clone(top.Links())
	for i := range links {
		links[i].Reservable = rapid.SampledFrom([]uint16{0, 0, 0, 0, 0, 150}).Draw(t, "reservable")
	}
	top, err := fabric.New(fabric.Parts{Switches: top.Switches(), Links: links})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBook(top, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func drawRequest(t *rapid.T, b *Book, now time.Time) Request {
	n := len(b.ledger.top.Switches())
	i := rapid.IntRange(1, n).Draw(t, "from")
	j := (i-1+rapid.IntRange(1, n-1).Draw(t, "step"))%n + 1
	r := between(fmt.Sprint("r", rapid.IntRange(0, 30).Draw(t, "name")), i, j, unit.Rate(rapid.IntRange(1, 7).Draw(t, "rate")), time.Time{}, time.Duration(rapid.IntRange(1, 10).Draw(t, "duration"))*time.Second)
	r.Class = rapid.IntRange(1, 4).Draw(t, "class")
	if rapid.Bool().Draw(t, "both") {
		r.Reverse = unit.Rate(rapid.IntRange(1, 5).Draw(t, "reverse"))
	}
	if rapid.Bool().Draw(t, "in advance") {
		r.Start = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "start")) * time.Second)
	}
	if rapid.IntRange(0, 2).Draw(t, "window") == 0 {
		r.Until = r.begin(now).Add(r.Duration + time.Duration(rapid.IntRange(0, 10).Draw(t, "slack"))*time.Second)
	}
	r.Paths = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "paths")
	r.Protected = rapid.IntRange(0, 3).Draw(t, "protected") == 0
	r.Disjoint = fabric.Disjointness(rapid.IntRange(0, 1).Draw(t, "by"))
	if links := b.ledger.top.Links(); rapid.IntRange(0, 5).Draw(t, "avoid") == 0 {
		r.Avoid = []fabric.LinkID{links[rapid.IntRange(0, len(links)-1).Draw(t, "link")].LinkID}
	}
	return r
}

// A grant is sound, a refusal is true, and what a refusal offers is granted, and is the best that the oracle finds.
func TestBookAgainstOracle(t *testing.T) {
	runs, grants, refusals := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		now := zero
		runs++
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "later")) * time.Second)
			r := drawRequest(t, b, now)
			o := newOracle(b)
			start := r.begin(now)
			var refusal *Refusal
			switch granted, err := b.Admit(r, now); {
			case err == nil:
				grants++
				sound(t, o, granted)
				first, ok := o.earliest(r, start)
				if !ok || !granted.Start.Equal(first) || granted.End.Sub(granted.Start) != r.Duration {
					t.Fatalf("granted at %v, and the oracle's earliest is %v, %v", granted.Start, first, ok)
				}
			case errors.As(err, &refusal):
				refusals++
				checkRefusal(t, b, o, r, refusal, now)
			default: // a mistake, of which there are tests below
			}
			oversold(t, b, now)
		}
	})
	if !testing.Short() && (grants < runs || refusals < runs/2) { // which makes few draws
		t.Errorf("%d grants and %d refusals in %d runs test too little", grants, refusals, runs)
	}
}

func checkRefusal(t *rapid.T, b *Book, o oracle, r Request, e *Refusal, now time.Time) {
	start := r.begin(now)
	earliest, ever := o.earliest(r, start)
	if latest := start; ever {
		if !r.Until.IsZero() {
			latest = r.Until.Add(-r.Duration)
		}
		if !earliest.After(latest) {
			t.Fatalf("refused (%v), and it fits at %v", e, earliest)
		}
	}
	if e.Reason == NoBandwidth {
		if used := o.used(e.Link, e.At); e.Needed <= e.Free || used+e.Free != o.limit(e.Link) {
			t.Fatalf("%v: the link has %v of %v", e, used, o.limit(e.Link))
		}
		if e.At.Before(start) || !e.At.Before(start.Add(r.Duration)) {
			t.Fatalf("%v: not in the time asked for, from %v", e, start)
		}
	}
	if ever != (e.Earliest != nil) || ever != (e.Window != nil) {
		t.Fatalf("%v: the oracle's earliest start is %v, %v", e, earliest, ever)
	}
	granted := func(offer Request) Reservation {
		got, err := b.WhatIf(offer, now)
		if err != nil {
			t.Fatalf("an offer of %q is refused: %v", e, err)
		}
		return got
	}
	if ever {
		if got := granted(*e.Earliest); !got.Start.Equal(earliest) {
			t.Fatalf("%v: the oracle's earliest start is %v", e, earliest)
		}
		if got := granted(*e.Window); !got.End.Equal(e.Window.Until) || !got.Start.Equal(earliest) {
			t.Fatalf("%v: the window is not the shortest", e)
		}
	}
	more := r
	if e.Most != nil {
		granted(*e.Most)
		more = *e.Most
		more.Forward++
	} else {
		more.Forward, more.Reverse = 1, min(1, r.Reverse)
	}
	if r.Reverse == 0 && o.fits(more, start, start.Add(r.Duration)) {
		t.Fatalf("%v: %v fits", e, more.Forward)
	}
}

// What is cancelled leaves no trace, and a what-if has no effect.
func TestCancelRestoresExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		for range rapid.IntRange(0, 6).Draw(t, "before") {
			b.Admit(drawRequest(t, b, zero), zero)
		}
		before := b.Clone()
		r := drawRequest(t, b, zero)
		if _, err := b.WhatIf(r, zero); !reflect.DeepEqual(before, b) {
			t.Fatalf("a what-if (%v) changed the book", err)
		}
		if _, err := b.Admit(r, zero); err != nil {
			if !reflect.DeepEqual(before, b) {
				t.Fatal("a refusal changed the book")
			}
			return
		}
		if _, err := b.Cancel(r.ID); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, b) {
			t.Fatal("the book is not as before the reservation")
		}
	})
}

func TestHoldCountsOnce(t *testing.T) {
	b, err := NewBook(network(rand.New(rand.NewPCG(1, 1)), 2, 1, 100*unit.Mbit), Limits{Ports: map[fabric.PortID]unit.Rate{port(1): 100 * unit.Mbit}})
	if err != nil {
		t.Fatal(err)
	}
	up := Uplink(port(1))
	r := between("a", 1, 2, 40*unit.Mbit, zero, time.Hour)
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return b.Hold(up, 50*unit.Mbit, "groups of h1", zero) }, ""},
		{func() error { return b.Hold(up, 50*unit.Mbit, "groups of h1", zero) }, ""}, // the same claim, not another one
		{func() error { _, err := b.Admit(r, zero); return err }, ""},
		{func() error { return b.Hold(up, 70*unit.Mbit, "groups of h1", zero) }, "the line into port s1/1 has 60Mbit of the 70Mbit for groups of h1"},
		{func() error { return b.Hold(up, 60*unit.Mbit, "groups of h1", zero) }, ""},
		{func() error { return b.Hold(up, 1, "another", zero) }, "has 0bit of the 1bit for another"},
		{func() error { return b.Hold(up, 70*unit.Mbit, "groups of h1", zero.Add(time.Hour)) }, ""}, // the reservation has ended
		{func() error { return b.Hold(up, 0, "groups of h1", zero) }, ""},
		{func() error { return b.Hold(fabric.LinkID{}, 1, "x", zero) }, "is not in the network"},
	} {
		got := ""
		if err := step.do(); err != nil {
			got = err.Error()
		}
		if step.want == "" && got != "" || !strings.Contains(got, step.want) {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	if steps, limit, _ := b.Calendar(up, zero, zero.Add(2*time.Hour)); limit != 100*unit.Mbit || !reflect.DeepEqual(steps, []Step{{zero, 40 * unit.Mbit}, {zero.Add(time.Hour), 0}}) {
		t.Errorf("the calendar is %v of %v", steps, limit)
	}
}

func TestExpire(t *testing.T) {
	b := lineBook(t)
	r := between("a", 1, 2, 100*unit.Mbit, zero, time.Hour)
	granted, err := b.Admit(r, zero)
	if err != nil {
		t.Fatal(err)
	}
	end := zero.Add(time.Hour)
	for at, want := range map[time.Time]State{zero.Add(-1): Scheduled, zero: Active, end.Add(-1): Active, end: Ended} {
		if got := granted.State(at); got != want {
			t.Errorf("at %v the reservation is %v, want %v", at, got, want)
		}
	}
	if removed := b.Expire(end.Add(time.Minute-1), time.Minute); removed != nil {
		t.Errorf("%v was removed within its grace", removed)
	}
	next := between("b", 1, 2, 100*unit.Mbit, end, time.Hour)
	if _, err := b.Admit(next, end); err != nil {
		t.Errorf("a reservation in its grace has bandwidth: %v", err)
	}
	if removed := b.Expire(end.Add(time.Minute), time.Minute); len(removed) != 1 || removed[0].Request.Name != "a" || len(b.All()) != 1 {
		t.Errorf("removed %v, and %v stay", removed, b.All())
	}
}
