package circuits

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// network is two switches with meters, two hosts at each, and a link of 40 Mbit/s.
func network(t *testing.T, meters int) *fabric.Topology {
	t.Helper()
	var parts fabric.Parts
	for id := fabric.DPID(1); id <= 2; id++ {
		s := fabric.Switch{ID: id, Capabilities: fabric.Capabilities{Meters: meters, Tables: 10, Select: 10, FastFailover: 10}}
		for no := fabric.PortNo(1); no <= 3; no++ {
			s.Ports = append(s.Ports, fabric.Port{No: no, Speed: unit.Gbit})
		}
		parts.Switches = append(parts.Switches, s)
	}
	a, b := fabric.PortID{Switch: 1, Port: 3}, fabric.PortID{Switch: 2, Port: 3}
	for _, l := range []fabric.LinkID{{From: a, To: b}, {From: b, To: a}} {
		parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: 40 * unit.Mbit, Cost: 1})
	}
	top, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// book is a book of reservations.
type book struct {
	*reserve.Book
	top *fabric.Topology
}

func (b *book) Topology() *fabric.Topology               { return b.top }
func (b *book) Watch(context.Context) <-chan struct{}    { return nil }
func port(s fabric.DPID, no fabric.PortNo) fabric.PortID { return fabric.PortID{Switch: s, Port: no} }
func end(name string, at fabric.PortID) reserve.Endpoint {
	return reserve.Endpoint{Name: name, At: at, Prefix: netip.MustParsePrefix("10.0.0." + name + "/32")}
}

// plant is switches that carry circuits as fluids: each gets the lower of what it offers and its limit.
type plant struct {
	sets   int // calls of SetCircuits
	all    []program.Circuit
	limits map[uint32]program.Limit
	offers map[string]unit.Rate
	sums   map[uint32]live.CircuitReading
	now    time.Time
	reads  int // calls of ReadCircuits
}

func (p *plant) SetCircuits(all []program.Circuit) {
	p.sets++
	p.all, p.limits = all, map[uint32]program.Limit{}
	for _, c := range all {
		p.limits[c.Number] = c.Limit()
	}
}

func (p *plant) SetLimits(limits map[uint32]program.Limit) {
	for number, limit := range limits {
		p.limits[number] = limit
	}
}

func (p *plant) ReadCircuits(_ context.Context, of map[fabric.DPID]bool) (out []live.CircuitReading) {
	p.reads++
	for _, c := range p.all {
		if of != nil && !of[c.From.Switch] {
			continue
		}
		r := p.sums[c.Number]
		r.Number, r.At = c.Number, p.now
		out = append(out, r)
	}
	return out
}

// run lets a second pass.
func (p *plant) run() { p.pass(time.Second) }

func (p *plant) pass(d time.Duration) {
	p.now = p.now.Add(d)
	for _, c := range p.all {
		r := p.sums[c.Number]
		r.Interval, r.Offered, r.Passed = d, p.offers[c.Name], min(p.offers[c.Name], p.limits[c.Number].Rate)
		r.OfferedBytes += uint64(float64(r.Offered) / 8 * d.Seconds())
		r.PassedBytes += uint64(float64(r.Passed) / 8 * d.Seconds())
		p.sums[c.Number] = r
	}
}

func (p *plant) limit(t *testing.T, name string) unit.Rate {
	t.Helper()
	for _, c := range p.all {
		if c.Name == name {
			return p.limits[c.Number].Rate
		}
	}
	t.Errorf("there is no circuit %q of %d", name, len(p.all))
	return 0
}

const rest = "unreserved at 0000000000000001/3"

// A reservation has its circuit and its rate, lends what it leaves unused, has it again in the cycle after it woke, and the circuits end
// with it.
func TestLoop(t *testing.T) {
	began := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	p := &plant{now: began, sums: map[uint32]live.CircuitReading{}, offers: map[string]unit.Rate{}}
	b := &book{top: network(t, 1000)}
	var err error
	if b.Book, err = reserve.NewBook(b.top, reserve.Limits{}); err != nil {
		t.Fatal(err)
	}
	l := New(p, &noAgents{}, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 1, Now: func() time.Time { return p.now }})
	step := func(n int) {
		for range n {
			p.run()
			l.Step(t.Context())
		}
	}
	l.Update()
	if p.sets != 1 || len(p.all) != 0 {
		t.Fatalf("without reservations %d lists were set, the last %+v", p.sets, p.all)
	}
	if _, err := b.Admit(reserve.Request{
		ID: reserve.ID{Name: "video"}, Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Class: 1,
		Forward: 20 * unit.Mbit, Duration: time.Minute, Flows: []reserve.Flow{{Protocol: 17, Destination: reserve.Ports{First: 5001, Last: 5001}}},
	}, p.now); err != nil {
		t.Fatal(err)
	}
	l.Update()
	if p.sets != 2 || len(p.all) != 2 {
		t.Fatalf("with a reservation %d lists were set, the last %+v", p.sets, p.all)
	}
	if c := p.all[1]; c.Name != "video forward" && p.all[0].Name != "video forward" {
		t.Fatalf("the circuits are %+v", p.all)
	}
	expect := func(when, name string, least, most unit.Rate) {
		t.Helper()
		if got := p.limit(t, name); got < least || got > most {
			t.Errorf("%s, %s is limited to %v, want %v to %v", when, name, got, least, most)
		}
	}
	p.offers["video forward"], p.offers[rest] = 20*unit.Mbit, 60*unit.Mbit
	step(10)
	expect("in use", "video forward", 20*unit.Mbit, 21*unit.Mbit)
	expect("in use", rest, 18*unit.Mbit, 20*unit.Mbit)
	p.offers["video forward"] = unit.Mbit
	step(10)
	expect("asleep", rest, 35*unit.Mbit, 40*unit.Mbit)
	p.offers["video forward"] = 20 * unit.Mbit
	step(2)
	expect("awake", "video forward", 20*unit.Mbit, 21*unit.Mbit)
	expect("awake", rest, 15*unit.Mbit, 20*unit.Mbit)
	if p.sets != 2 {
		t.Errorf("the circuits were set %d times, want limits alone to change", p.sets)
	}
	step(45 + int(grace/time.Second))
	if len(p.all) != 0 {
		t.Errorf("after the end and its grace there is %+v", p.all)
	}
}

// Without meters a circuit takes its path and has no limit, and what is not reserved has none.
func TestNoMeters(t *testing.T) {
	p := &plant{now: time.Now(), sums: map[uint32]live.CircuitReading{}}
	b := &book{top: network(t, 0)}
	b.Book, _ = reserve.NewBook(b.top, reserve.Limits{})
	if _, err := b.Admit(reserve.Request{ID: reserve.ID{Name: "video"}, Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Class: 1, Forward: 20 * unit.Mbit, Duration: time.Minute}, p.now); err != nil {
		t.Fatal(err)
	}
	New(p, &noAgents{}, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 1, Now: func() time.Time { return p.now }}).Update()
	if len(p.all) != 1 || p.all[0].Rate != 0 || len(p.all[0].Paths) != 1 {
		t.Errorf("the circuits are %+v", p.all)
	}
}

// The reverse direction has its ends, ports and links exchanged, and a spare path is one.
func TestReverse(t *testing.T) {
	there := fabric.Path{{From: port(1, 3), To: port(2, 3)}}
	r := reserve.Reservation{Request: reserve.Request{
		Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Class: 2,
		Flows: []reserve.Flow{{Protocol: 6, Source: reserve.Ports{First: 1, Last: 2}, Destination: reserve.Ports{First: 80, Last: 80}}},
	}, Paths: []reserve.Path{{Links: there}, {Links: fabric.Path{{From: port(1, 4), To: port(2, 4)}}, Spare: true}}}
	c := circuit(r, true)
	if c.From != port(2, 1) || c.To != port(1, 1) || c.Source != r.Request.Destination.Prefix || c.Flows[0].Source.First != 80 || c.Flows[0].Destination.Last != 2 ||
		len(c.Paths) != 1 || c.Paths[0][0] != (fabric.LinkID{From: port(2, 3), To: port(1, 3)}) || c.Spare[0].From != port(2, 4) {
		t.Errorf("the reverse circuit is %+v", c)
	}
	if there[0].From != port(1, 3) {
		t.Error("the path of the reservation was changed")
	}
}

// Numbers follow from names, and differ.
func TestNumbers(t *testing.T) {
	taken := map[uint32]bool{0: true}
	k := key{reservation: reserve.ID{Tenant: "acme", Name: "backup"}}
	first := number(k, taken)
	if again := number(k, map[uint32]bool{0: true}); again != first {
		t.Errorf("%d and %d", first, again)
	}
	if next := number(k, taken); next == first || next == 0 {
		t.Errorf("a taken number %d is followed by %d", first, next)
	}
}

// A rate that rose before the last part of a cycle is known at its end: the next limit is that rate, and not a mean.
func TestGlance(t *testing.T) {
	for glance, least := range map[bool]unit.Rate{true: 30 * unit.Mbit, false: 0} {
		l, p, _, step := begin(t, time.Hour)
		p.offers["acme/video forward"], p.offers[rest] = 22*unit.Mbit, 10*unit.Mbit
		step(20)
		before := p.limit(t, "acme/video forward")
		part := func(d time.Duration, offers unit.Rate) {
			p.offers["acme/video forward"] = offers
			p.pass(d)
		}
		part(300*time.Millisecond, 22*unit.Mbit)
		part(300*time.Millisecond, 30*unit.Mbit)
		if glance {
			l.Glance(t.Context(), true)
		}
		part(400*time.Millisecond, 30*unit.Mbit)
		l.Step(t.Context())
		if got := p.limit(t, "acme/video forward"); got < least || !glance && got > 29*unit.Mbit {
			t.Errorf("with a reading within the cycle: %v. The limit is %v after %v, want at least %v", glance, got, before, least)
		}
	}
}

// A flow that rises has more after the part of the cycle in which it did. What is known of its senders follows from the two parts that end a cycle alone.
func TestGlanceAfterEachPart(t *testing.T) {
	l, p, _, step := begin(t, time.Hour)
	const name = "acme/video forward"
	p.offers[name], p.offers[rest] = 22*unit.Mbit, 40*unit.Mbit
	step(20)
	for _, offers := range []unit.Rate{22 * unit.Mbit, 30 * unit.Mbit} {
		p.offers[name] = offers
		p.pass(200 * time.Millisecond)
		l.Glance(t.Context(), false)
	}
	if got := p.limit(t, name); got < 30*unit.Mbit {
		t.Errorf("it offers 30 Mbit/s and has %v", got)
	}
	i := slices.IndexFunc(l.plan, func(c carried) bool { return c.Name == name })
	if before := l.plan[i].senders.before.At; p.now.Sub(before) != 400*time.Millisecond {
		t.Errorf("what is known of its senders is from %v before", p.now.Sub(before))
	}
	p.pass(600 * time.Millisecond)
	l.Step(t.Context())
	if s := l.cycle.Flows()[l.plan[i].flows[0].index]; s.Offered < 28*unit.Mbit || s.Offered > 29*unit.Mbit {
		t.Errorf("in the cycle it offered %v, want 28.4 Mbit/s", s.Offered)
	}
}

func TestCheckInterval(t *testing.T) {
	for d, ok := range map[time.Duration]bool{LeastInterval: true, DefaultInterval: true, MostInterval: true, LeastInterval - 1: false, MostInterval + 1: false} {
		if err := CheckInterval(d); (err == nil) != ok {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// A reservation for later changes nothing until it begins, also if nothing tells the loop again.
func TestReservationForLater(t *testing.T) {
	l, p, b, step := begin(t, 2*time.Hour)
	step(1)
	if _, err := b.Admit(reserve.Request{
		ID: reserve.ID{Tenant: "acme", Name: "backup"}, Source: end("2", port(1, 2)), Destination: end("4", port(2, 2)), Class: 2,
		Forward: 5 * unit.Mbit, Start: p.now.Add(time.Hour), Duration: time.Hour,
	}, p.now); err != nil {
		t.Fatal(err)
	}
	began := p.now
	l.Update()
	for range 3700 {
		step(1)
		if backup := len(p.all) == 3; backup != (p.now.Sub(began) >= time.Hour) {
			t.Fatalf("after %v there are %d circuits, want 2 and after an hour 3", p.now.Sub(began), len(p.all))
		}
	}
	if p.sets != 2 {
		t.Errorf("the circuits were set %d times", p.sets)
	}
}

// changing is a book that takes its time, and in which something changes all the time.
type changing struct {
	*book
	looked int
}

const lookTakes = 20 * time.Millisecond

func (c *changing) Between(from, to time.Time) []reserve.Reservation {
	c.looked++
	time.Sleep(lookTakes)
	return c.book.Between(from, to)
}

func (c *changing) Watch(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			select {
			case changed <- struct{}{}:
			default:
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return changed
}

// Changes that come one after the other are taken together, so that updates take a fifth of the time.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := network(t, 10)
		none, err := reserve.NewBook(top, reserve.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		b := &changing{book: &book{none, top}}
		l := New(&plant{now: time.Now(), sums: map[uint32]live.CircuitReading{}}, &noAgents{}, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 1, Now: time.Now})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l.Run(ctx)
		time.Sleep(10 * time.Millisecond) // until Watch has ended
		if least, most := 90, 10*int(time.Second/((1+restFactor)*lookTakes))+1; b.looked < least || b.looked > most {
			t.Errorf("%d updates in 10 s, want %d to %d", b.looked, least, most)
		}
	})
}
