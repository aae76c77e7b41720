package reserve

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// changed returns the topology with other states of ports and other capacities.
func changed(top *fabric.Topology, state func(fabric.PortID) fabric.PortState, capacity func(fabric.Link) unit.Rate) *fabric.Topology {
	p := fabric.Parts{Switches: slices.Clone(top.Switches()), Links: slices.Clone(top.Links())}
	for i := range p.Switches {
		s := &p.Switches[i]
		s.Ports = slices.Clone(s.Ports)
		for j := range s.Ports {
			s.Ports[j].State = state(fabric.PortID{Switch: s.ID, Port: s.Ports[j].No})
		}
	}
	for i := range p.Links {
		p.Links[i].Capacity = capacity(p.Links[i])
	}
	t, err := fabric.New(p)
	if err != nil {
		panic(err)
	}
	return t
}

func same(l fabric.Link) unit.Rate { return l.Capacity }

// Whatever links fail, return or change their capacity, nothing is oversold, what is not degraded is whole, and what is
// degraded without paths has none.
func TestRerouteAgainstOracle(t *testing.T) {
	degraded, whole := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		now := zero
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			for range rapid.IntRange(1, 5).Draw(t, "requests") {
				b.Admit(drawRequest(t, b, now), now)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "later")) * time.Second)
			before := b.All()
			failed := map[fabric.PortID]bool{}
			for _, l := range b.ledger.top.Links() {
				failed[l.From] = rapid.IntRange(0, 5).Draw(t, "fails") == 0
			}
			top := changed(b.ledger.top, func(p fabric.PortID) fabric.PortState {
				if failed[p] {
					return fabric.Down
				}
				return fabric.Up
			}, func(l fabric.Link) unit.Rate {
				if rapid.IntRange(0, 9).Draw(t, "capacity") == 0 {
					return 4
				}
				return l.Capacity
			})
			moved := map[ID]bool{}
			for _, r := range b.Reroute(top, now) {
				moved[r.After.Request.ID] = true
				if r.After.Generation != r.Before.Generation+1 {
					t.Fatalf("generation %d after %d", r.After.Generation, r.Before.Generation)
				}
			}
			oversold(t, b, now)
			o := newOracle(b)
			for i, r := range b.All() {
				if !now.Before(r.End) {
					continue
				}
				if !moved[r.Request.ID] && r.Generation != before[i].Generation {
					t.Fatalf("%v changed, and was not reported", r.Request.ID)
				}
				if r.Degraded == "" {
					whole++
					sound(t, o, r)
					continue
				}
				degraded++
				if q := r.rest(); len(r.Paths) == 0 && q.Reverse == 0 {
					q.Forward, q.Paths, q.Protected = 1, 1, false
					if o.fits(q, r.Since, r.End) {
						t.Fatalf("%v has nothing (%s), and 1 bit/s fits", r.Request.ID, r.Degraded)
					}
				}
			}
		}
	})
	if !testing.Short() && (degraded == 0 || whole == 0) { // which makes few draws
		t.Errorf("%d degraded and %d whole reservations test too little", degraded, whole)
	}
}

// Two reservations of one dead link want the same other link: the class decides, then the rate, not the name.
func TestRerouteByClass(t *testing.T) {
	for _, c := range []struct {
		classes [2]int
		rates   [2]unit.Rate
		first   string
	}{
		{[2]int{2, 1}, [2]unit.Rate{40, 30}, "b"},
		{[2]int{1, 1}, [2]unit.Rate{30, 40}, "b"},
		{[2]int{1, 1}, [2]unit.Rate{40, 40}, "a"},
	} {
		b, err := NewBook(network(rand.New(rand.NewPCG(1, 1)), 2, 2, 50), Limits{}) // two cables
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "b"} {
			r := between(name, 1, 2, c.rates[i], zero, time.Hour)
			r.Class = c.classes[i]
			if _, err := b.Admit(r, zero); err != nil {
				t.Fatal(err)
			}
		}
		dead := b.All()[0].Paths[0].Links[0]
		b.Change(ID{Name: "b"}, Change{Move: true, Avoid: []fabric.LinkID{}}, zero)
		up := func(fabric.PortID) fabric.PortState { return fabric.Up }
		top := b.ledger.top
		gone := changed(top, func(p fabric.PortID) fabric.PortState {
			if p == dead.From || p == b.All()[1].Paths[0].Links[0].From {
				return fabric.Down
			}
			return fabric.Up
		}, same)
		b.Reroute(gone, zero)
		half := changed(top, func(p fabric.PortID) fabric.PortState {
			if p == dead.From {
				return fabric.Down
			}
			return fabric.Up
		}, same)
		got := b.Reroute(half, zero)
		if len(got) != 2 || got[0].After.Request.Name != c.first || got[0].After.Degraded != "" || got[1].After.Degraded == "" {
			t.Errorf("%v: planned %+v, want %s first, and the other degraded", c, got, c.first)
		}
		for _, r := range b.Reroute(changed(top, up, same), zero) {
			if r.After.Degraded != "" {
				t.Errorf("%v is degraded (%s), and all links are back", r.After.Request.ID, r.After.Degraded)
			}
		}
	}
}

// A change does not count the reservation itself, and a refused one changes nothing.
func TestChangeAgainstOracle(t *testing.T) {
	changes, refusals := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			b.Admit(drawRequest(t, b, zero), zero)
		}
		all := b.All()
		if len(all) == 0 {
			return
		}
		was := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
		now := zero.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "later")) * time.Second)
		rate := unit.Rate(rapid.IntRange(1, 12).Draw(t, "rate"))
		c := Change{Forward: &rate, Move: rapid.Bool().Draw(t, "move")}
		if rapid.Bool().Draw(t, "end") {
			c.End = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "length")) * time.Second)
		}
		got, err := b.Change(was.Request.ID, c, now)
		oversold(t, b, now)
		want := was
		want.Forward = rate
		if !c.End.IsZero() {
			want.End = c.End
		}
		if want.Since = was.Start; now.After(want.Since) {
			want.Since = now
		}
		o := newOracle(b).without(was.Request.ID)
		var refusal *Refusal
		switch {
		case err == nil:
			changes++
			sound(t, o, got)
			if got.Forward != rate || got.End != want.End || got.Start != was.Start || got.Generation != was.Generation+1 {
				t.Fatalf("changed to %+v", got)
			}
		case errors.As(err, &refusal):
			refusals++
			if o.fits(want.rest(), want.Since, want.End) {
				t.Fatalf("%v: it fits", err)
			}
			if m := refusal.Most; m != nil {
				c.Forward, c.Reverse = &m.Forward, &m.Reverse
				if _, err := b.WhatIfChange(was.Request.ID, c, now); err != nil {
					t.Fatalf("the offer of %q is refused: %v", refusal, err)
				}
			}
			fallthrough
		default:
			if r, _ := b.Get(was.Request.ID); r.Generation != was.Generation {
				t.Fatal("a refused change changed the reservation")
			}
		}
	})
	if !testing.Short() && (changes == 0 || refusals == 0) { // which makes few draws
		t.Errorf("%d changes and %d refusals test too little", changes, refusals)
	}
}

// A granted volume is moved in time, and what a refusal offers is granted.
func TestVolume(t *testing.T) {
	b := lineBook(t)
	if _, err := b.Admit(between("a", 1, 2, 75*unit.Mbit, zero, 10*time.Second), zero); err != nil {
		t.Fatal(err)
	}
	r := between("v", 1, 2, 0, zero, 0)
	r.Volume, r.Until = 125_000_000, zero.Add(40*time.Second) // 1 Gbit: 40 s at 25 Mbit/s, or from 10 s on 10 s at 100
	got, err := b.Admit(r, zero)
	if err != nil || got.Forward != 100*unit.Mbit || !got.Start.Equal(zero.Add(10*time.Second)) || !got.End.Equal(zero.Add(20*time.Second)) {
		t.Errorf("granted %v in %v - %v, %v", got.Forward, got.Start, got.End, err)
	}
	r.Name, r.Until = "w", zero.Add(15*time.Second)
	_, err = b.Admit(r, zero)
	var e *Refusal
	if !errors.As(err, &e) || e.Reason != TooLate || e.Window == nil {
		t.Fatalf("got %v", err)
	}
	if _, err := b.WhatIf(*e.Window, zero); err != nil {
		t.Errorf("the offer of %q is refused: %v", e, err)
	}
}

// Each mistake has a sentence that names the key and the remedy.
func TestMistakes(t *testing.T) {
	b := lineBook(t)
	for want, change := range map[string]func(*Request){
		"start: 2025-12-31T23:59:59Z is in the past: write a time after":                                   func(r *Request) { r.Start = zero.Add(-time.Second) },
		"rate: the rate is 0: write one":                                                                   func(r *Request) { r.Forward = 0 },
		"rate: 1Gbit is more than any link can reserve, which is 100Mbit: ask for less, or for more paths": func(r *Request) { r.Forward = unit.Gbit },
		"source: the network knows no host h1: correct the name":                                           func(r *Request) { r.Source.At = fabric.PortID{} },
		"until: the window from":                                                                           func(r *Request) { r.Until = zero.Add(time.Minute) },
		"duration: the duration is 0s: write how long":                                                     func(r *Request) { r.Duration = 0 },
		"destination: host h1 and host h2 are at the same port s1/1":                                       func(r *Request) { r.Destination.At = port(1) },
		"until: the deadline 2025-12-31T23:59:59Z is not after":                                            func(r *Request) { r.Until = zero.Add(-time.Second) },
		"class: 5 is not a class: write 1":                                                                 func(r *Request) { r.Class = 5 },
		"name: the reservation has no name":                                                                func(r *Request) { r.Name = "" },
		"paths: 9 is not a number of disjoint paths":                                                       func(r *Request) { r.Paths = 9 },
		"flows[1]: flow 2 overlaps flow 1":                                                                 func(r *Request) { r.Flows = []Flow{{Protocol: 6}, {Protocol: 6}} },
		"until: a reservation with a volume has no deadline":                                               func(r *Request) { r.Volume, r.Forward, r.Duration = 1, 0, 0 },
	} {
		r := between("a", 1, 2, unit.Mbit, zero, time.Hour)
		change(&r)
		var e *Invalid
		if _, err := b.WhatIf(r, zero); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
