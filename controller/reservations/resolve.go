package reservations

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
)

// maxNames is the number of names of hosts up to which a similar one is looked for: a comparison takes about a
// microsecond.
const maxNames = 5000

// Joined returns the MAC addresses of the host of the service with a name, as its agent reports them, and the address from which the agent is connected. There are
// none if the agent is not connected to this controller.
type Joined func(host string) (macs []fabric.MAC, from netip.Addr)

// NameBy lets requests name hosts of the service, beside those that the document of the network names. It must be called before the first change.
func (o *Owner) NameBy(joined Joined) { o.joined = joined }

// resolve finds the ports of a request's ends in the network. The ends have Kind and Name, the Prefix or VLAN of those
// kinds, and At if the request names the port. With suggest an error may name other hosts. The error joins a
// *reserve.Invalid for each end.
func resolve(r reserve.Request, top *fabric.Topology, joined Joined, suggest bool) (reserve.Request, error) {
	s := resolver{top, joined, suggest}
	var from, to error
	r.Source, from = s.end("from", r.Source)
	r.Destination, to = s.end("to", r.Destination)
	return r, errors.Join(from, to)
}

// resolveLike is resolve for a request that changes another one: an end with the same name has the same port, wherever its
// host is now. The relay agents that carry its traffic stay.
func resolveLike(r, was reserve.Request, top *fabric.Topology, joined Joined, suggest bool) (reserve.Request, error) {
	like := func(e, was reserve.Endpoint) reserve.Endpoint {
		if sameEnd(e, was) && (e.At == fabric.PortID{} || e.At == was.At) {
			return was
		}
		return e
	}
	asked := was.Asked()
	r.Source, r.Destination = like(r.Source, asked.Source), like(r.Destination, asked.Destination)
	if r.Source != asked.Source || r.Destination != asked.Destination {
		return resolve(r, top, joined, suggest)
	}
	if r.Carried != nil && was.Carried != nil {
		r.Carried = &reserve.Carried{Source: r.Source, Destination: r.Destination, Flows: r.Flows, Near: was.Carried.Near, Far: was.Carried.Far}
		r.Source, r.Destination, r.Flows = was.Source, was.Destination, was.Flows
	}
	return r, nil
}

// sameEnd reports whether two ends have the same name. A host that is named by its address is the same as the prefix of that address alone.
func sameEnd(a, b reserve.Endpoint) bool {
	of, single := address(a)
	other, also := address(b)
	return a.Kind == b.Kind && a.Name == b.Name || single && also && of == other
}

// address returns the address of an end that has one alone.
func address(e reserve.Endpoint) (netip.Addr, bool) {
	switch e.Kind {
	case reserve.Prefix:
		return e.Prefix.Addr(), e.Prefix.IsSingleIP()
	case reserve.Host:
		a, err := netip.ParseAddr(e.Name)
		return a, err == nil
	}
	return netip.Addr{}, false
}

type resolver struct {
	top     *fabric.Topology
	joined  Joined // nil without hosts of a service
	suggest bool
}

func (s resolver) end(key string, e reserve.Endpoint) (reserve.Endpoint, error) {
	switch e.Kind {
	case reserve.Site:
		return s.site(key, e)
	case reserve.Prefix:
		return s.port(key, e, func(h fabric.Host) bool {
			return slices.ContainsFunc(h.Addrs, e.Prefix.Contains)
		})
	case reserve.VLAN:
		return s.port(key, e, func(h fabric.Host) bool { return h.VLAN == e.VLAN })
	}
	return s.host(key, e)
}

// host finds a host by its name, address or MAC. A name of the network's document comes before one of the service.
func (s resolver) host(key string, e reserve.Endpoint) (reserve.Endpoint, error) {
	mac, notMAC := fabric.ParseMAC(e.Name)
	addr, notAddr := netip.ParseAddr(e.Name)
	var found []fabric.Host
	for _, h := range s.top.Hosts() {
		if h.Name == e.Name || notMAC == nil && h.MAC == mac || notAddr == nil && slices.Contains(h.Addrs, addr) {
			if e.At == (fabric.PortID{}) || h.At == e.At {
				found = append(found, h)
			}
		}
	}
	if len(found) == 0 && notMAC != nil && notAddr != nil {
		found = s.ofService(e)
	}
	if len(found) == 0 {
		return e, s.unknown(key, e)
	}
	if i := slices.IndexFunc(found, func(h fabric.Host) bool { return h.At != found[0].At }); i > 0 {
		return e, invalid(key, "%v is at ports %s and %s, and an end of a reservation has one: name one of its addresses, or the port", e, s.top.PortLabel(found[0].At), s.top.PortLabel(found[i].At))
	}
	e.At, e.VLAN = found[0].At, found[0].VLAN
	switch {
	case notAddr == nil:
		e.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	case len(found) == 1 && len(found[0].Addrs) == 1:
		e.Prefix = netip.PrefixFrom(found[0].Addrs[0], found[0].Addrs[0].BitLen())
	case slices.ContainsFunc(s.top.HostsAt(e.At), func(h fabric.Host) bool {
		return !slices.ContainsFunc(found, func(f fabric.Host) bool { return f.HostID == h.HostID })
	}):
		// All traffic of the port would be that of other hosts, too.
		return e, invalid(key, "%v has no address or several, and other hosts are at its port %s: name one of its addresses", e, s.top.PortLabel(e.At))
	}
	return e, nil
}

// ofService finds a host of the service whose name the document of the network does not have. An agent that reports the MAC of another host has not the address that
// the network has learned for it.
func (s resolver) ofService(e reserve.Endpoint) (found []fabric.Host) {
	if s.joined == nil || slices.ContainsFunc(s.top.Hosts(), func(h fabric.Host) bool { return h.Name == e.Name }) {
		return nil
	}
	macs, from := s.joined(e.Name)
	for _, h := range s.top.Hosts() {
		if slices.Contains(macs, h.MAC) && slices.Contains(h.Addrs, from) && (e.At == (fabric.PortID{}) || h.At == e.At) {
			found = append(found, h)
		}
	}
	return found
}

// unknown is the error of a host that is not in the network.
func (s resolver) unknown(key string, e reserve.Endpoint) error {
	text := fmt.Sprintf("the network knows no %v", e)
	if e.At != (fabric.PortID{}) {
		text += " at port " + s.top.PortLabel(e.At)
	}
	if s.suggest {
		var all []string
		for _, h := range s.top.Hosts() {
			if h.Name != "" {
				all = append(all, h.Name)
			}
		}
		if len(all) <= maxNames {
			if meant := config.Similar(e.Name, all); meant != "" {
				return invalid(key, "%s: did you mean %s?", text, meant)
			}
		}
	}
	return invalid(key, "%s: correct the name, write the IP address of the host, wait until it sends a packet, or write the host in the document of kind: Network", text)
}

// site finds the port of a site: the one that has hosts.
func (s resolver) site(key string, e reserve.Endpoint) (reserve.Endpoint, error) {
	inside := map[string]bool{e.Name: true}
	exists := false
	for range s.top.Sites() { // a site can be nested as deep as there are sites
		before := len(inside)
		for _, one := range s.top.Sites() {
			exists = exists || one.Name == e.Name
			if inside[one.Parent] && one.Parent != "" {
				inside[one.Name] = true
			}
		}
		if len(inside) == before {
			break
		}
	}
	if !exists {
		return e, invalid(key, "the network knows no %v: write the name of a site in the document of kind: Network", e)
	}
	return s.port(key, e, func(h fabric.Host) bool {
		at, _ := s.top.Switch(h.At.Switch)
		return inside[at.Site]
	})
}

// port finds the one port of the hosts for which is returns true, unless the end names it.
func (s resolver) port(key string, e reserve.Endpoint, is func(fabric.Host) bool) (reserve.Endpoint, error) {
	if e.At != (fabric.PortID{}) {
		return e, nil
	}
	for _, h := range s.top.Hosts() {
		switch {
		case !is(h):
		case e.At == (fabric.PortID{}):
			e.At = h.At
		case e.At != h.At:
			both := []any{e, s.top.PortLabel(e.At), s.top.PortLabel(h.At)}
			e.At = fabric.PortID{}
			return e, invalid(key, "%v has hosts at ports %s and %s, and an end of a reservation has one port: name the port, and make a reservation for each", both...)
		}
	}
	if e.At == (fabric.PortID{}) {
		return e, invalid(key, "the network knows no host of %v: name the port at which its traffic enters the network", e)
	}
	return e, nil
}
