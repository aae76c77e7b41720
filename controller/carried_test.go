package controller

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
	"headgate.dev/headgate/fabric/reserve"
)

// carriedBy is a reservation of an hour that the agents a and b carry.
func carriedBy(start time.Time) reserve.Reservation {
	end := func(addr string, port fabric.PortNo) reserve.Endpoint {
		a := netip.MustParseAddr(addr)
		return reserve.Endpoint{Name: addr, Prefix: netip.PrefixFrom(a, a.BitLen()), At: fabric.PortID{Switch: 1, Port: port}}
	}
	return reserve.Reservation{Start: start, End: start.Add(time.Hour), Request: reserve.Request{
		ID: reserve.ID{Tenant: "shop", Name: "copy"}, Source: end("10.0.0.2", 2), Destination: end("10.0.0.3", 3), Flows: []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 8424, Last: 8424}}},
		Carried: &reserve.Carried{Source: end("10.0.0.1", 1), Destination: end("10.0.0.4", 4), Flows: []reserve.Flow{{Protocol: 6}}, Near: "a", Far: "b"},
	}}
}

// Connections are redirected from the start to the end of a reservation, and its start and its end are waited for.
func TestCarriedRules(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	plain := carriedBy(start)
	plain.Request.Carried = nil
	all := []reserve.Reservation{carriedBy(start), plain}
	for _, c := range []struct {
		after time.Duration
		rules int
		holds time.Duration
	}{
		{-time.Minute, 0, time.Second}, {-300 * time.Millisecond, 0, 300 * time.Millisecond}, {0, 1, time.Second},
		{time.Hour - 200*time.Millisecond, 1, 200 * time.Millisecond}, {time.Hour, 0, time.Second},
	} {
		if rules, holds := carriedRules(all, start.Add(c.after)); len(rules) != c.rules || holds != c.holds {
			t.Errorf("at %v: %d rules for %v, want %d for %v", c.after, len(rules), holds, c.rules, c.holds)
		}
	}
}

// An agent that is gone, or that has lost its streams, is found, and one that is there is not.
func TestMissingRelay(t *testing.T) {
	q := carriedBy(time.Now()).Request
	host := func(e reserve.Endpoint) fabric.Host {
		return fabric.Host{Addrs: []netip.Addr{e.Prefix.Addr()}, At: e.At}
	}
	near := redirect.Agent{Name: "a", Host: host(q.Source), Takes: true, Exits: []redirect.Exit{{Address: q.Destination.Prefix.Addr(), Ports: []uint16{8425, 8424}}}}
	far := redirect.Agent{Name: "b", Host: host(q.Destination), Connects: true}
	moved, closed, deaf, lost := far, far, near, near
	moved.Host.At.Port = 9
	closed.Connects = false
	deaf.Exits = nil
	lost.Exits = []redirect.Exit{near.Exits[0]}
	lost.Exits[0].Ports = []uint16{8425}
	for _, c := range []struct {
		agents []redirect.Agent
		want   string
		at     fabric.PortID
	}{
		{[]redirect.Agent{far, near}, "", fabric.PortID{}},
		{[]redirect.Agent{far}, "a is gone", q.Source.At},
		{[]redirect.Agent{near}, "b is gone", q.Destination.At},
		{[]redirect.Agent{near, moved}, "b is gone", q.Destination.At},
		{[]redirect.Agent{near, closed}, "b is gone", q.Destination.At},
		{[]redirect.Agent{deaf, far}, "a has no streams to b", q.Source.At},
		{[]redirect.Agent{lost, far}, "a no longer has streams to port 8424 of b", q.Source.At},
	} {
		why, at := missingRelay(q, c.agents)
		if why != c.want && (c.want == "" || !strings.HasPrefix(why, c.want)) || at != c.at {
			t.Errorf("%q at %v, want %q at %v", why, at, c.want, c.at)
		}
	}
	if !slices.Contains(fabric.FaultKinds, fabric.MissingRelay) {
		t.Error("metrics do not have the fault")
	}
}
