package reservations_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// carrying is a world with a relay agent beside the client and one beside the server:
//
//	client --s1 ----- s2-- server
//	near ----+         +-- far
type carrying struct {
	*world
	agents []redirect.Agent
}

func newCarrying(t *testing.T) *carrying {
	var p fabric.Parts
	for id := range fabric.DPID(2) {
		p.Switches = append(p.Switches, fabric.Switch{ID: id + 1, Name: "s" + string('1'+rune(id)), Site: []string{"west", "east"}[id], Ports: []fabric.Port{{No: 1, Speed: unit.Gbit}, {No: 2, Speed: unit.Gbit}, {No: 3, Speed: unit.Gbit}}})
	}
	p.Sites = []fabric.Site{{Name: "west"}, {Name: "east"}}
	between := fabric.LinkID{From: fabric.PortID{Switch: 1, Port: 3}, To: fabric.PortID{Switch: 2, Port: 3}}
	p.Links = []fabric.Link{{LinkID: between, Capacity: 100 * unit.Mbit, Cost: 1}, {LinkID: between.Reverse(), Capacity: 100 * unit.Mbit, Cost: 1}}
	for i, name := range []string{"client", "near", "server", "far"} {
		p.Hosts = append(p.Hosts, fabric.Host{
			HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, byte(i + 1)}}, Name: name, At: fabric.PortID{Switch: fabric.DPID(1 + i/2), Port: fabric.PortNo(1 + i%2)},
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i / 2), byte(1 + i%2)}), netip.MustParseAddr("fd00::" + string('1'+rune(i)))}, Learned: fabric.FromConfiguration,
		})
	}
	top, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	w := &carrying{world: newWorld(t)}
	w.top.Store(top)
	if err := w.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.agents = []redirect.Agent{
		{Name: "a", Host: p.Hosts[1], Takes: true, Exits: []redirect.Exit{{
			Address: netip.MustParseAddr("10.0.1.2"), Ports: []uint16{8424, 8425}, Destinations: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("fd00::/64")},
		}}},
		{Name: "b", Host: p.Hosts[3], Connects: true},
	}
	w.CarryBy(func(c fabric.Connection, e redirect.Ends) (redirect.Pair, string) {
		return redirect.Choose(c, e, w.agents, func(fabric.DPID, fabric.DPID) (int, bool) { return 1, true })
	})
	return w
}

// carried is a request of TCP to a port that relay agents are to carry.
func carried(name, from, to string) reserve.Request {
	r := between(name, from, to, 40*unit.Mbit)
	r.Flows = []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 5001, Last: 5010}}}
	r.Carried = &reserve.Carried{}
	return r
}

// What is reserved is the streams between the agents, and what is shown and redirected is what was asked for.
func TestCarry(t *testing.T) {
	w := newCarrying(t)
	r := carried("copy", "10.0.0.1", "10.0.1.1")
	r.Reverse = 10 * unit.Mbit
	doc := w.must(r)
	c := doc.Request.Carried
	if doc.Request.From.Name != "10.0.0.1" || doc.Request.To.Name != "10.0.1.1" || doc.Request.Flows[0].DestinationPorts[1] != 5010 || c == nil || c.Near != "a" || c.Far != "b" {
		t.Errorf("shown as %+v", doc.Request)
	}
	granted, err := doc.Granted()
	if err != nil {
		t.Fatal(err)
	}
	q := granted.Request
	if q.Source.Prefix.String() != "10.0.0.2/32" || q.Destination.Prefix.String() != "10.0.1.2/32" || q.Source.At.Port != 2 || q.Destination.At != (fabric.PortID{Switch: 2, Port: 2}) ||
		!reflect.DeepEqual(q.Flows, []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 8424, Last: 8424}}, {Protocol: 6, Destination: reserve.Ports{First: 8425, Last: 8425}}}) {
		t.Errorf("reserved for %+v", q)
	}
	if all := w.Active(); len(all) != 1 || !reflect.DeepEqual(all[0], granted) {
		t.Errorf("the book has %+v", all)
	}
	rule, ok := reservations.Rule(granted)
	want := redirect.Rule{
		Redirect: fabric.Redirect{Name: "copy", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}, To: []netip.Prefix{netip.MustParsePrefix("10.0.1.1/32")}, Ports: []fabric.PortRange{{First: 5001, Last: 5010}}},
		Near:     netip.MustParseAddr("10.0.0.2"), Far: netip.MustParseAddr("10.0.1.2"),
	}
	if !ok || !reflect.DeepEqual(rule, want) {
		t.Errorf("redirects %+v, want %+v", rule, want)
	}

	// The agents and their streams stay when the reservation changes, also while they are gone.
	w.agents = nil
	if same, err := w.change(r, false, nil); err != nil || same.Generation != doc.Generation {
		t.Errorf("the same request: %+v, %v", same, err)
	}
	r.Forward = 50 * unit.Mbit
	more, err := w.change(r, false, nil)
	if err != nil || more.RateBps != 50e6 || !reflect.DeepEqual(more.Request.Carried, c) {
		t.Errorf("a higher rate: %+v, %v", more, err)
	}
	r.Carried = nil
	if _, err := w.change(r, false, nil); err == nil || !strings.Contains(err.Error(), "carry of reservation copy cannot change") {
		t.Errorf("without carry: %v", err)
	}
	// A document of a former version has no field for it.
	text, err := json.Marshal(w.must(between("plain", "10.0.0.1", "10.0.1.1", unit.Mbit)))
	if err != nil || strings.Contains(string(text), "carried") {
		t.Errorf("%s, %v", text, err)
	}
}

// Ends without an address are selected by their ports of the network.
func TestCarryAnyAddress(t *testing.T) {
	w := newCarrying(t)
	r := carried("all", "client", "server")
	r.Flows = append(r.Flows, reserve.Flow{Protocol: 6, Destination: reserve.Ports{First: 443, Last: 443}})
	doc := w.must(r)
	granted, err := doc.Granted()
	if err != nil {
		t.Fatal(err)
	}
	rule, _ := reservations.Rule(granted)
	if rule.From != nil || rule.To != nil || rule.ClientsAt != (fabric.PortID{Switch: 1, Port: 1}) || rule.ServersAt != (fabric.PortID{Switch: 2, Port: 1}) || len(rule.Ports) != 2 {
		t.Errorf("redirects %+v", rule)
	}
	if err := w.cancel(doc.ID()); err != nil {
		t.Fatal(err)
	}
	six := w.must(carried("six", "fd00::1", "fd00::3"))
	if granted, err := six.Granted(); err != nil || granted.Request.Source.Prefix.String() != "10.0.0.2/32" || granted.Request.Carried.Destination.Prefix.String() != "fd00::3/128" {
		t.Errorf("IPv6: %+v, %v", granted.Request, err)
	}
}

// Refusals say why relay agents do not carry the traffic, and what to do.
func TestCarryRefused(t *testing.T) {
	w := newCarrying(t)
	all := w.agents
	vlan := carried("x", "10.0.0.1", "10.0.1.1")
	vlan.Source = reserve.Endpoint{Kind: reserve.VLAN, Name: "7", VLAN: 7, At: fabric.PortID{Switch: 1, Port: 1}}
	udp, demand, any := carried("x", "10.0.0.1", "10.0.1.1"), carried("x", "10.0.0.1", "10.0.1.1"), carried("x", "10.0.0.1", "10.0.1.1")
	udp.Flows[0].Protocol = 17
	demand.OnDemand = true
	any.Flows = nil
	wide := carried("x", "10.0.0.1", "10.0.1.1")
	wide.Destination = reserve.Endpoint{Kind: reserve.Prefix, Name: "10.0.0.0/15", Prefix: netip.MustParsePrefix("10.0.0.0/15"), At: fabric.PortID{Switch: 2, Port: 1}}
	elsewhere := []redirect.Agent{all[0], all[1]}
	elsewhere[0].Exits = []redirect.Exit{all[0].Exits[0]}
	elsewhere[0].Exits[0].Ports = nil
	beside := []redirect.Agent{all[0], all[1]}
	beside[1].Host.At = all[0].Host.At
	for _, one := range []struct {
		request reserve.Request
		agents  []redirect.Agent
		want    string
	}{
		{carried("x", "10.0.0.1", "10.0.1.1"), nil, "no relay agents carry connections from host 10.0.0.1 to host 10.0.1.1, because no agent takes connections"},
		{carried("x", "10.0.0.1", "10.0.1.2"), all, "relay agent b is one of its ends: start a relay agent near each end"},
		{vlan, all, "vlan 7 is not one: write a host, a site or a prefix"},
		{udp, all, "flow 1 has another protocol: write tcp"},
		{any, all, "the reservation is for all traffic: write the flows"},
		{demand, all, "relay agents always have packets on the way"},
		{wide, all, "relay agent a sends a part of prefix 10.0.0.0/15 to b"},
		{carried("x", "10.0.0.1", "10.0.1.1"), elsewhere, "relay agent a has no streams to the address 10.0.1.2 of its exit b"},
		{carried("x", "10.0.0.1", "10.0.1.1"), beside, "relay agents a and b are at the same port s1/2"},
	} {
		w.agents = one.agents
		if _, err := w.WhatIf(one.request, nil); err == nil || !strings.HasPrefix(err.Error(), "carry: ") || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%v, want %s", err, one.want)
		}
	}

	// The bounds of a tenant are about what it asks for.
	w.agents = all
	bounds := &store.ReservationBounds{RateBps: 1e9, Class: 1, Duration: int64(2 * time.Hour), Ahead: int64(24 * time.Hour), Ends: []string{"10.0.0.1", "10.0.1.1"}}
	mine := carried("mine", "10.0.0.1", "10.0.1.1")
	mine.Tenant = "shop"
	if _, err := w.WhatIf(mine, bounds); err != nil {
		t.Errorf("within the bounds: %v", err)
	}
	out := *bounds
	out.Ends = []string{"10.0.0.2", "10.0.1.2"}
	if _, err := w.WhatIf(mine, &out); err == nil || !strings.Contains(err.Error(), "from: host 10.0.0.1 is not an end") {
		t.Errorf("out of the bounds: %v", err)
	}

	// The streams of two agents have one reservation at a time.
	w.must(carried("first", "10.0.0.1", "10.0.1.1"))
	if _, err := w.create(carried("second", "fd00::1", "fd00::3"), nil); err == nil || !strings.Contains(err.Error(), `carry: relay agents a and b carry reservation first until 2030-01-01T13:00:00Z, in the same streams: raise its rate ("headgate reserve change first --rate")`) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := w.create(mine, bounds); err == nil || strings.Contains(err.Error(), "first") {
		t.Errorf("one of a tenant: %v", err)
	}
	later := carried("later", "10.0.0.1", "10.0.1.1")
	later.Start = began.Add(time.Hour)
	w.must(later)
	longer := carried("first", "10.0.0.1", "10.0.1.1")
	longer.Duration = 2 * time.Hour
	if _, err := w.change(longer, false, nil); err == nil || !strings.Contains(err.Error(), "carry reservation later") {
		t.Errorf("a longer one: %v", err)
	}
}
