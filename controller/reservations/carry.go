package reservations

import (
	"errors"
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
)

// Choose returns the relay agents that would carry a connection now, or why there are none: a live.Network's Pair.
type Choose func(fabric.Connection, redirect.Ends) (redirect.Pair, string)

// CarryBy lets relay agents carry the traffic of reservations that ask for it. It must be called before the first change.
func (o *Owner) CarryBy(choose Choose) { o.choose = choose }

// carry finds the relay agents of a request that asks for them, whose ends are resolved. The streams between the agents then take the place of the
// traffic, so that the paths and the rate are theirs. The agents are those to which the network redirects a connection between the ends.
func carry(r reserve.Request, top *fabric.Topology, choose Choose) (reserve.Request, error) {
	if r.Carried == nil {
		return r, nil
	}
	var errs []error
	for _, e := range r.CheckCarried() {
		errs = append(errs, e)
	}
	if len(errs) > 0 {
		return r, errors.Join(errs...)
	}
	const remedy = "start a relay agent near each end, list both in relays.agents of the network's file, or remove carry"
	if choose == nil {
		return r, invalid("carry", "the network has no switches that send connections to relay agents: remove carry")
	}
	client, from := hostOf(top, r.Source)
	server, to := hostOf(top, r.Destination)
	pair, why := choose(fabric.Connection{Client: netip.AddrPortFrom(from, 0), Server: netip.AddrPortFrom(to, 0)}, redirect.Ends{Client: client, Beyond: server, Server: server})
	if why != "" {
		return r, invalid("carry", "no relay agents carry connections from %v to %v, because %s: %s", r.Source, r.Destination, why, remedy)
	}
	near, far := pair.Near.AddrLike(pair.Exit.Address), pair.Exit.Address
	p := r.Destination.Prefix
	switch {
	case len(pair.Exit.Ports) == 0 || !near.IsValid():
		return r, invalid("carry", "relay agent %s has no streams to the address %v of its exit %s: give a path of the exit this address", pair.Near.Name, far, pair.Far.Name)
	case p.IsValid() && !slices.ContainsFunc(pair.Exit.Destinations, func(d netip.Prefix) bool { return d.Bits() <= p.Bits() && d.Contains(p.Addr()) }):
		return r, invalid("carry", "relay agent %s sends a part of %v to %s, and the rest goes another way: name a prefix that is within the destinations of one exit", pair.Near.Name, r.Destination, pair.Far.Name)
	case pair.Near.Host.At == pair.Far.Host.At:
		return r, invalid("carry", "relay agents %s and %s are at the same port %s, and their streams do not cross the network: %s", pair.Near.Name, pair.Far.Name, top.PortLabel(pair.Near.Host.At), remedy)
	}
	r.Carried = &reserve.Carried{Source: r.Source, Destination: r.Destination, Flows: r.Flows, Near: pair.Near.Name, Far: pair.Far.Name}
	r.Source, r.Destination, r.Flows = agentEnd(pair.Near, near), agentEnd(pair.Far, far), nil
	for _, p := range pair.Exit.Ports {
		r.Flows = append(r.Flows, reserve.Flow{Protocol: 6, Destination: reserve.Ports{First: p, Last: p}})
	}
	return r, nil
}

// agentEnd is the end of streams at an agent.
func agentEnd(a redirect.Agent, addr netip.Addr) reserve.Endpoint {
	return reserve.Endpoint{Kind: reserve.Host, Name: addr.String(), Prefix: netip.PrefixFrom(addr, addr.BitLen()), VLAN: a.Host.VLAN, At: a.Host.At}
}

// hostOf returns a host of an end, and one of its addresses. The address is zero if none is known.
func hostOf(top *fabric.Topology, e reserve.Endpoint) (fabric.Host, netip.Addr) {
	first := fabric.Host{At: e.At, HostID: fabric.HostID{VLAN: e.VLAN}}
	for i, h := range top.HostsAt(e.At) {
		if i == 0 {
			first = h
		}
		for _, a := range h.Addrs {
			if !a.IsLinkLocalUnicast() && (!e.Prefix.IsValid() || e.Prefix.Contains(a)) {
				return h, a
			}
		}
	}
	return first, e.Prefix.Addr()
}

// checkStreams refuses a reservation for streams that another one has at the same time: relay agents put all connections into the same streams.
func (o *Owner) checkStreams(r reserve.Reservation, within *store.ReservationBounds) error {
	c := r.Request.Carried
	if c == nil {
		return nil
	}
	for _, other := range o.book.Between(r.Start, r.End) {
		q := other.Request
		if q.Carried == nil || q.ID == r.Request.ID || q.Source.Prefix != r.Request.Source.Prefix || q.Destination.Prefix != r.Request.Destination.Prefix {
			continue
		}
		if within != nil && q.Tenant != r.Request.Tenant {
			return invalid("carry", "relay agents %s and %s carry a reservation of others until %s, in the same streams: begin after it, or ask the operator", c.Near, c.Far, stamp(other.End))
		}
		return invalid("carry", "relay agents %s and %s carry reservation %v until %s, in the same streams: raise its rate (\"headgate reserve change %[3]v --rate\"), or begin after it", c.Near, c.Far, q.ID, stamp(other.End))
	}
	return nil
}

// Rule returns what the network redirects to relay agents while a reservation is active, false if they do not carry its traffic.
func Rule(r reserve.Reservation) (out redirect.Rule, ok bool) {
	c := r.Request.Carried
	if c == nil {
		return out, false
	}
	out = redirect.Rule{
		Redirect: fabric.Redirect{Name: r.Request.ID.String()},
		Near:     r.Request.Source.Prefix.Addr(), Far: r.Request.Destination.Prefix.Addr(),
	}
	out.From, out.ClientsAt = selected(c.Source)
	out.To, out.ServersAt = selected(c.Destination)
	for _, f := range c.Flows {
		if f.Destination == (reserve.Ports{}) {
			out.Ports = nil // all
			break
		}
		out.Ports = append(out.Ports, fabric.PortRange(f.Destination))
	}
	return out, true
}

// selected returns what selects an end: its addresses, or the port of the network where any address is meant.
func selected(e reserve.Endpoint) ([]netip.Prefix, fabric.PortID) {
	if e.Prefix.IsValid() {
		return []netip.Prefix{e.Prefix}, fabric.PortID{}
	}
	return nil, e.At
}
