package circuits

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// A reservation that is pushed on demand waits until traffic comes, and again a minute after the last packet. The first leader does not know whether it
// has traffic, and lets it wait after a minute.
func TestOnDemand(t *testing.T) {
	p := &plant{now: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC), sums: map[uint32]live.CircuitReading{}, offers: map[string]unit.Rate{}}
	b := &book{top: network(t, 1000)}
	b.Book, _ = reserve.NewBook(b.top, reserve.Limits{})
	admit := func(name string, at reserve.Endpoint, onDemand bool) {
		t.Helper()
		if _, err := b.Admit(reserve.Request{
			ID: reserve.ID{Name: name}, Source: end("1", port(1, 1)), Destination: at, Class: 1, OnDemand: onDemand, Forward: 5 * unit.Mbit, Duration: time.Hour,
		}, p.now); err != nil {
			t.Fatal(err)
		}
	}
	admit("early", end("3", port(2, 1)), true)
	admit("ahead", end("4", port(2, 2)), false)
	l := New(p, &noAgents{}, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 1, Now: func() time.Time { return p.now }})
	l.Update()
	waiting := func(when string, want map[string]bool) {
		t.Helper()
		for _, c := range p.all {
			if want[c.Name] != c.Waiting {
				t.Errorf("%s, circuit %s waits: %v", when, c.Name, c.Waiting)
			}
		}
	}
	step := func(n int) {
		for range n {
			p.run()
			l.Step(t.Context())
		}
	}
	waiting("at the begin of a term", nil)
	step(int(demandIdle/time.Second) + 1)
	waiting("after a minute without traffic", map[string]bool{"early forward": true})
	sets := p.sets
	step(10)
	p.offers["early forward"] = unit.Mbit
	step(1)
	waiting("with traffic", nil)
	p.offers["early forward"] = 0
	step(int(demandIdle / time.Second))
	waiting("a minute after the last packet", nil)
	step(1)
	waiting("later", map[string]bool{"early forward": true})
	if p.sets != sets+2 {
		t.Errorf("the circuits were set %d times, want 2", p.sets-sets)
	}
	admit("late", end("2", port(1, 2)), true)
	l.Update()
	waiting("a new one", map[string]bool{"early forward": true, "late forward": true})
	if _, err := b.Cancel(reserve.ID{Name: "ahead"}); err != nil {
		t.Fatal(err)
	}
	admit("ahead", end("4", port(2, 2)), true)
	l.Update()
	waiting("one that was pushed ahead before", map[string]bool{"early forward": true, "late forward": true})
}
