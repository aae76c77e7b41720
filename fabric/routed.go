package fabric

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"headgate.dev/headgate/unit"
)

// routed reports whether a router is at an end of a link, and whether a switch is at the other one, at the port beside.
func (l LinkConfig) routed() (beside PortRef, mixed, ok bool) {
	a, b := l.Ends[0], l.Ends[1]
	switch {
	case a.Switch.IsRouter():
		return b, !b.Switch.IsRouter(), true
	case b.Switch.IsRouter():
		return a, true, true
	}
	return PortRef{}, false, false
}

// Switched returns the configuration for those who know switches alone: without routers, their links and their hosts. A
// port of a switch with a link to a router has no link to a switch, and any number of hosts is behind it.
func (c Config) Switched() Config {
	if len(c.Routers) == 0 {
		return c
	}
	c = c.clone()
	c.Routers = nil
	for _, l := range c.Links {
		p, mixed, _ := l.routed()
		if !mixed {
			continue
		}
		c.Trust = append(c.Trust, p)
		for i := range c.Switches {
			if s := &c.Switches[i]; s.ID == p.Switch && !slices.Contains(s.HostPorts, p.Port) {
				s.HostPorts = append(s.HostPorts, p.Port)
			}
		}
	}
	c.Links = slices.DeleteFunc(c.Links, func(l LinkConfig) bool { _, _, ok := l.routed(); return ok })
	c.Hosts = slices.DeleteFunc(c.Hosts, func(h HostConfig) bool { return h.At.Switch.IsRouter() })
	return c
}

// WithRouters adds routers, their links and their hosts to the switches, links and hosts that were found; a network of
// routers alone has none of these. What an operator wrote replaces what was found at the same port, and of the same
// host or address. A link to a port of a switch that was not found is left out. c has no mistakes of Check.
func (c Config) WithRouters(found Parts) Parts {
	if len(c.Routers) == 0 {
		return found
	}
	ports := map[DPID][]Port{}
	for _, s := range found.Switches {
		ports[s.ID] = s.Ports
	}
	r := routedParts{Parts{Sites: c.Sites}, map[DPID]map[PortNo]Port{}, map[PortID]bool{}, c.Measured}
	for _, l := range c.bound(ports).Links {
		if p, mixed, ok := l.routed(); ok && (!mixed || slices.ContainsFunc(ports[p.Switch], func(q Port) bool { return q.No == p.Port.No })) {
			r.link(l)
		}
	}
	for _, h := range c.Hosts {
		if h.At.Switch.IsRouter() {
			r.host(h)
		}
	}
	r.found(found)
	for _, one := range c.Routers {
		r.parts.Switches = append(r.parts.Switches, Switch{
			ID: one.ID(), Name: one.Name, Site: one.Site, Agent: one.Host,
			Ports: slices.Collect(maps.Values(r.interfaces[one.ID()])), // New sorts them
		})
	}
	return r.parts
}

// routedParts collects the parts of a network with routers.
type routedParts struct {
	parts      Parts
	interfaces map[DPID]map[PortNo]Port // of routers
	linked     map[PortID]bool          // ports at both ends of links to routers
	measured   map[LinkID]unit.Rate     // capacities in force
}

// add adds a port, if it is of a router.
func (r *routedParts) add(at PortID, p Port) {
	if !at.Switch.IsRouter() {
		return
	}
	if r.interfaces[at.Switch] == nil {
		r.interfaces[at.Switch] = map[PortNo]Port{}
	}
	p.No = at.Port
	r.interfaces[at.Switch][p.No] = p
}

func (r *routedParts) link(l LinkConfig) {
	id, _ := l.ID()
	r.add(id.From, Port{Name: l.Ends[0].Port.Name})
	r.add(id.To, Port{Name: l.Ends[1].Port.Name})
	r.linked[id.From], r.linked[id.To] = true, true
	for id, capacity := range map[LinkID]unit.Rate{id: l.Capacity, id.Reverse(): cmp.Or(l.Back, l.Capacity)} { // New sorts them
		one := Link{LinkID: id, Cost: l.Cost, Reservable: l.Reservable}
		one.SetCapacity(capacity, r.measured[id], 0)
		r.parts.Links = append(r.parts.Links, one)
	}
}

func (r *routedParts) host(h HostConfig) {
	host, _ := h.Host()
	r.add(host.At, Port{Name: h.At.Port.Name, Speed: h.Capacity})
	r.parts.Hosts = append(r.parts.Hosts, host)
}

// found adds what was found and was not written.
func (r *routedParts) found(found Parts) {
	r.parts.Switches = append(r.parts.Switches, found.Switches...)
	for _, l := range found.Links {
		if !r.linked[l.From] && !r.linked[l.To] {
			r.parts.Links = append(r.parts.Links, l)
		}
	}
	hosts, addrs := map[HostID]bool{}, map[vlanAddr]bool{}
	for _, h := range r.parts.Hosts {
		hosts[h.HostID] = true
		for _, a := range h.Addrs {
			addrs[vlanAddr{h.VLAN, a}] = true
		}
	}
	for _, h := range found.Hosts {
		if r.linked[h.At] || hosts[h.HostID] {
			continue
		}
		h.Addrs = slices.DeleteFunc(slices.Clone(h.Addrs), func(a netip.Addr) bool { return addrs[vlanAddr{h.VLAN, a}] })
		r.parts.Hosts = append(r.parts.Hosts, h)
	}
}
