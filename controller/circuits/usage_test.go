package circuits

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// begin starts a loop on a link of 40 Mbit/s with the reservation video of 20 Mbit/s, which lasts as long as is given. step lets
// seconds pass.
func begin(t *testing.T, lasts time.Duration) (l *Loop, p *plant, b *book, step func(n int)) {
	t.Helper()
	p = &plant{now: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC), sums: map[uint32]live.CircuitReading{}, offers: map[string]unit.Rate{}}
	b = &book{top: network(t, 1000)}
	var err error
	if b.Book, err = reserve.NewBook(b.top, reserve.Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Admit(reserve.Request{
		ID: reserve.ID{Tenant: "acme", Name: "video"}, Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Class: 1,
		Forward: 20 * unit.Mbit, Duration: lasts,
	}, p.now); err != nil {
		t.Fatal(err)
	}
	l = New(p, &noAgents{}, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 1, Now: func() time.Time { return p.now }})
	l.Update()
	return l, p, b, func(n int) {
		for range n {
			p.run()
			l.Step(t.Context())
		}
	}
}

// one returns the usage of the only direction.
func one(t *testing.T, l *Loop) Usage {
	t.Helper()
	all := l.Usage()
	if len(all) != 1 {
		t.Fatalf("the usage is %+v, want one direction", all)
	}
	return all[0]
}

// The account of a reservation has what it used, lent and borrowed, over minutes that have ended and the one that has not, and stays
// for an hour after the end.
func TestUsage(t *testing.T) {
	l, p, _, step := begin(t, 10*time.Minute)
	if u := one(t, l); u.Reserved != 20*unit.Mbit || u.Point != cycle.Switch || u.Total != (usage.Usage{}) || !u.Since.Equal(p.now) {
		t.Errorf("at the begin the usage is %+v", u)
	}
	p.offers["acme/video forward"], p.offers[rest] = 5*unit.Mbit, 60*unit.Mbit
	step(90)
	u := one(t, l)
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*0.9 || got > want*1.1 {
			t.Errorf("%s: %.0f, want about %.0f", what, got, want)
		}
	}
	near("seconds", u.Total.Seconds, 89)
	near("offered", float64(u.Total.Offered), 89*5e6/8)
	near("reserved", float64(u.Total.Guaranteed), 89*20e6/8)
	near("lent", float64(u.Total.Lent), 89*15e6/8)
	if u.Reservation != (reserve.ID{Tenant: "acme", Name: "video"}) || u.Offered != 5*unit.Mbit || u.Delivered != 5*unit.Mbit || u.Peak != 5*unit.Mbit || u.Total.Borrowed != 0 || u.Total.Unmet != 0 || !u.Full.IsZero() || u.Limit == 0 {
		t.Errorf("the usage is %+v", u)
	}
	// It borrows what the rest leaves.
	p.offers["acme/video forward"], p.offers[rest] = 35*unit.Mbit, unit.Mbit
	step(60)
	if u = one(t, l); u.Total.Borrowed < 40*15e6/8 || u.Peak != 35*unit.Mbit || u.Full.IsZero() {
		t.Errorf("the usage is %+v", u)
	}
	step(int((10*time.Minute + grace) / time.Second))
	if u := one(t, l); u.Offered != 0 || u.Total.Seconds < 590 {
		t.Errorf("after the end the usage is %+v", u)
	}
	step(int(kept/time.Second) + 60)
	if all := l.Usage(); len(all) != 0 {
		t.Errorf("an hour after the end the usage is %+v", all)
	}
}

// The account goes on when a reservation had no path for a while.
func TestUsageWithoutPath(t *testing.T) {
	l, p, b, step := begin(t, time.Hour)
	p.offers["acme/video forward"] = 20 * unit.Mbit
	step(10)
	before, with := one(t, l), b.Book
	b.Book, _ = reserve.NewBook(b.top, reserve.Limits{})
	l.Update()
	step(5)
	if u := one(t, l); u.Offered != 0 || u.Total.Delivered == 0 || u.Reserved != before.Reserved {
		t.Errorf("without a path the usage is %+v", u)
	}
	b.Book = with
	p.offers["acme/video forward"] = 0
	l.Update()
	step(5)
	if u := one(t, l); !u.Since.Equal(before.Since) || u.Full.IsZero() || u.Total.Delivered < before.Total.Delivered || u.Total.Seconds <= before.Total.Seconds {
		t.Errorf("the usage is %+v, and was %+v", u, before)
	}
}

// A reservation that got less than it offered and holds has unmet seconds.
func TestUsageUnmet(t *testing.T) {
	l, p, _, step := begin(t, time.Hour)
	step(2)
	p.offers["acme/video forward"] = 30 * unit.Mbit
	for range 10 {
		for number := range p.limits {
			p.limits[number] = program.Limit{Rate: 10 * unit.Mbit} // a switch that does not do as it was told
		}
		step(1)
	}
	if u := one(t, l); u.Total.Unmet < 8 || u.Total.Unmet > 10 || u.Delivered != 10*unit.Mbit {
		t.Errorf("the usage is %+v", u)
	}
}

// A reservation that has never offered half of what it holds in an hour is unused.
func TestUnused(t *testing.T) {
	u := Usage{Reserved: 20 * unit.Mbit, Peak: 9 * unit.Mbit, Total: usage.Usage{Seconds: 3600}}
	if !u.Unused() {
		t.Error("with a peak below half it is not unused")
	}
	for what, change := range map[string]func(*Usage){
		"a short time":      func(u *Usage) { u.Total.Seconds = 3599 },
		"half":              func(u *Usage) { u.Peak = 10 * unit.Mbit },
		"nothing to be had": func(u *Usage) { u.Reserved, u.Peak = 0, 0 },
	} {
		other := u
		if change(&other); other.Unused() {
			t.Errorf("with %s it is unused", what)
		}
	}
}

// The paths of a reservation are one account: bytes and rates are added, seconds are not.
func TestUsageOfPaths(t *testing.T) {
	path := account{status: cycle.Status{Reserved: unit.Mbit, Delivered: unit.Mbit, Point: cycle.Point{Kind: cycle.Switch}}, sum: usage.Usage{Seconds: 60, Unmet: 5, Delivered: 100}}
	other := path
	other.status.Point = cycle.Point{}
	u := join(key{}, []account{path, other})
	if u.Reserved != 2*unit.Mbit || u.Total.Seconds != 60 || u.Total.Unmet != 5 || u.Total.Delivered != 200 || u.Point != cycle.Nowhere {
		t.Errorf("two paths are %+v", u)
	}
}

// TestUsageOfReplacedPath: a path that was replaced before the end does not count once the reservation has ended.
func TestUsageOfReplacedPath(t *testing.T) {
	end := time.Date(2026, 11, 27, 10, 5, 0, 0, time.UTC)
	replaced := account{status: cycle.Status{Reserved: unit.Mbit}, sum: usage.Usage{Delivered: 100}, gone: end.Add(-time.Minute)}
	last := account{status: cycle.Status{Reserved: 2 * unit.Mbit}, sum: usage.Usage{Delivered: 100}, gone: end}
	if u := join(key{}, []account{replaced, last}); u.Reserved != 2*unit.Mbit || u.Total.Delivered != 200 {
		t.Errorf("a path that was replaced and the last one are %+v", u)
	}
}
