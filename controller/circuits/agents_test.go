package circuits

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// noAgents is a network without agents.
type noAgents struct{}

func (noAgents) Interfaces() map[fabric.MAC]points.Interface       { return nil }
func (noAgents) SetReservations(string, *agents.Reservations) bool { return true }
func (noAgents) SetLimits(string, *agents.ReservationLimits) bool  { return true }
func (noAgents) Measured(time.Duration) map[string]points.Measured { return nil }

// crew is agents that keep what they are told.
type crew struct {
	interfaces map[fabric.MAC]points.Interface
	lists      map[string]*agents.Reservations
	limits     map[string]*agents.ReservationLimits // the newest
	measured   map[string]points.Measured
	refuses    bool
	sent       int // lists
}

func (c *crew) Interfaces() map[fabric.MAC]points.Interface       { return c.interfaces }
func (c *crew) Measured(time.Duration) map[string]points.Measured { return c.measured }
func (c *crew) SetReservations(host string, list *agents.Reservations) bool {
	c.lists[host] = list
	c.sent++
	return !c.refuses
}

func (c *crew) SetLimits(host string, l *agents.ReservationLimits) bool {
	c.limits[host] = l
	return !c.refuses
}

// keys returns what the agent of a host has, as key@device.
func (c *crew) keys(host string) (all []string) {
	for _, r := range c.lists[host].GetReservations() {
		all = append(all, r.Key+"@"+r.Dev)
	}
	return all
}

func mac(last byte) fabric.MAC { return fabric.MAC{2, 0, 0, 0, 0, last} }

// routers is h1 at r1, h2 at r2, and a link of 40 Mbit/s between r1 and r2.
func routers(t *testing.T) (top *fabric.Topology, h1, h2 fabric.PortID) {
	t.Helper()
	r1, r2 := fabric.RouterID("r1"), fabric.RouterID("r2")
	h1, h2 = fabric.PortID{Switch: r1, Port: 1}, fabric.PortID{Switch: r2, Port: 1}
	a, b := fabric.PortID{Switch: r1, Port: 2}, fabric.PortID{Switch: r2, Port: 2}
	parts := fabric.Parts{
		Links: []fabric.Link{{LinkID: fabric.LinkID{From: a, To: b}, Capacity: 40 * unit.Mbit, Cost: 1}, {LinkID: fabric.LinkID{From: b, To: a}, Capacity: 40 * unit.Mbit, Cost: 1}},
		Hosts: []fabric.Host{{HostID: fabric.HostID{MAC: mac(1)}, Name: "h1", At: h1}, {HostID: fabric.HostID{MAC: mac(2)}, Name: "h2", At: h2}},
	}
	for n, id := range []fabric.DPID{r1, r2} {
		name := []string{"r1", "r2"}[n]
		parts.Switches = append(parts.Switches, fabric.Switch{ID: id, Name: name, Agent: name, Ports: []fabric.Port{{No: 1, Name: "eth1", Speed: unit.Gbit}, {No: 2, Name: "eth2"}}})
	}
	slices.SortFunc(parts.Switches, func(a, b fabric.Switch) int { return cmp.Compare(a.ID, b.ID) })
	top, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	return top, h1, h2
}

// loopOfRouters returns a loop for routers, with the crew of their agents, at the time now.
func loopOfRouters(t *testing.T, now *time.Time) (l *Loop, c *crew, b *book, h1, h2 fabric.PortID) {
	top, h1, h2 := routers(t)
	b = &book{top: top}
	b.Book, _ = reserve.NewBook(top, reserve.Limits{})
	c = &crew{
		interfaces: map[fabric.MAC]points.Interface{mac(11): {Host: "r1", Dev: "eth1"}, mac(12): {Host: "r2", Dev: "eth1"}},
		lists:      map[string]*agents.Reservations{}, limits: map[string]*agents.ReservationLimits{},
	}
	return New(nil, c, b, Options{Scheme: share.NewAdaptive(share.DefaultQuantum), Term: 7, Now: func() time.Time { return *now }}), c, b, h1, h2
}

// The first router of a path limits a reservation, and the second one keeps its rate. An agent of the source host limits in place of the
// first router. Limits alone are sent when nothing else changes, and the whole list when they were not taken.
func TestAgents(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	l, c, b, h1, h2 := loopOfRouters(t, &now)
	if _, err := b.Admit(reserve.Request{ID: reserve.ID{Name: "copy"}, Source: end("1", h1), Destination: end("2", h2), Class: 1, Forward: 20 * unit.Mbit, Duration: time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	l.Update()
	check := func(when, host string, want ...string) {
		t.Helper()
		if got := c.keys(host); !slices.Equal(got, want) {
			t.Errorf("%s, %s has %v, want %v", when, host, got, want)
		}
	}
	check("with routers", "r1", "-/copy/forward@eth2")
	check("with routers", "r2", "-/copy/forward/via/r2/eth1@eth1")
	if one := c.lists["r1"]; one.Fence.Epoch != 7 || one.LineBps["eth2"] != 40e6 || one.Reservations[0].RateBps != 20e6 || one.Reservations[0].LimitBps != 20e6 {
		t.Errorf("r1 has %v", one)
	}

	step := func(n int, p points.Part, queued float64) {
		for range n {
			now = now.Add(time.Second)
			p.Period = time.Second
			c.measured = map[string]points.Measured{"-/copy/forward": {Parts: []points.Part{p}, Queued: queued, Limit: 20 * unit.Mbit}}
			l.Step(t.Context())
		}
	}
	sent := c.sent
	step(5, points.Part{Offered: 20 * unit.Mbit, Delivered: 20 * unit.Mbit}, 1)
	if got := c.limits["r1"].GetLimitBps()["-/copy/forward"]; got <= 20e6 || c.sent != sent {
		t.Errorf("a sender that waits has the limit %d, after %d lists", got, c.sent-sent)
	}
	step(10, points.Part{Offered: unit.Mbit, Delivered: unit.Mbit}, 0)
	if got := c.limits["r1"].LimitBps["-/copy/forward"]; got != 20e6 {
		t.Errorf("a sender that sleeps has the limit %d, want what is reserved", got)
	}
	c.refuses = true
	step(2, points.Part{Offered: 20 * unit.Mbit}, 1)
	sent = c.sent
	c.refuses = false
	step(1, points.Part{Offered: 20 * unit.Mbit}, 1)
	if c.sent == sent || c.lists["r1"].Reservations[0].LimitBps <= 20e6 {
		t.Errorf("limits that were not taken are not repeated: %v", c.lists["r1"])
	}

	c.interfaces = maps.Clone(c.interfaces)
	c.interfaces[mac(1)] = points.Interface{Host: "h1", Dev: "eth0", Speed: unit.Gbit}
	step(1, points.Part{}, 0)
	check("with an agent on the host", "h1", "-/copy/forward@eth0")
	check("with an agent on the host", "r1", "-/copy/forward/via/r1/eth2@eth2")
	delete(c.interfaces, mac(1))
	if _, err := b.Cancel(reserve.ID{Name: "copy"}); err != nil {
		t.Fatal(err)
	}
	l.Update()
	for _, host := range []string{"h1", "r1", "r2"} {
		check("without a reservation", host)
	}
}

// What a reservation of UDP offers is known although its queue is full: it gets that, and not twice what it had.
func TestUnresponsive(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	l, c, b, h1, h2 := loopOfRouters(t, &now)
	if _, err := b.Admit(reserve.Request{
		ID: reserve.ID{Name: "calls"}, Source: end("1", h1), Destination: end("2", h2), Class: 1, Forward: 10 * unit.Mbit, Duration: time.Hour,
		Flows: []reserve.Flow{{Protocol: 17}},
	}, now); err != nil {
		t.Fatal(err)
	}
	l.Update()
	for range 8 {
		now = now.Add(time.Second)
		limit := max(unit.Rate(c.limits["r1"].GetLimitBps()["-/calls/forward"]), 10*unit.Mbit)
		const offered = 13 * unit.Mbit
		c.measured = map[string]points.Measured{"-/calls/forward": {Limit: limit, Queued: 1, Parts: []points.Part{{Period: time.Second, Offered: offered, Delivered: min(offered, limit)}}}}
		l.Step(t.Context())
	}
	if got := unit.Rate(c.limits["r1"].GetLimitBps()["-/calls/forward"]); got < 13*unit.Mbit || got > 16*unit.Mbit {
		t.Errorf("a reservation that offers 13 Mbit/s, and whose queue is full, has the limit %v", got)
	}
}
