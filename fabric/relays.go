package fabric

import (
	"fmt"
	"net/netip"
	"slices"
)

// Relays is what an operator writes of relay agents in the network.
type Relays struct {
	// Agents are the hosts whose announcements as relay agents count, by their names or addresses.
	Agents []string
	// Redirect are the connections that agents carry where they can, by the first rule that matches.
	Redirect []Redirect
}

// Redirect matches TCP connections that are redirected to relay agents. What is empty matches any.
type Redirect struct {
	Name string
	// From are the prefixes of clients, and To those of servers.
	From, To []netip.Prefix
	// Ports are those of servers.
	Ports []PortRange
}

// PortRange is ports, both included.
type PortRange struct{ First, Last uint16 }

// Connection is a TCP connection by its two ends.
type Connection struct{ Client, Server netip.AddrPort }

// relays reports what of the relays of a network cannot be.
func (k *configChecker) relays(r Relays) {
	names := map[string]bool{}
	for i, one := range r.Redirect {
		field := fmt.Sprintf("relays.redirect[%d]", i)
		switch {
		case one.Name == "":
			k.add(field+".name", "redirection %d has no name: add one", i+1)
		case names[one.Name]:
			k.add(field+".name", "redirection %s is listed twice: rename one", one.Name)
		}
		names[one.Name] = true
		if len(one.Selectors(everywhere)) == 0 {
			k.add(field+".to", "redirection %s matches nothing: its clients have addresses of IPv4 and its servers of IPv6, or the other way round", one.Name)
		}
		for _, p := range one.Ports {
			if p.First == 0 || p.First > p.Last {
				k.add(field+".ports", "%d-%d are no ports: write for example 443 or 5001-5100", p.First, p.Last)
			}
		}
	}
}

// everywhere is all addresses.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// IsAgent reports whether a host may be a relay agent.
func (r Relays) IsAgent(h Host) bool {
	return slices.ContainsFunc(r.Agents, func(name string) bool {
		return name == h.Name || slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return name == a.String() })
	})
}

// CanBegin reports whether a host can begin a connection that the rule matches.
func (r Redirect) CanBegin(h Host) bool {
	return len(r.From) == 0 || slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return containsAddr(r.From, a) })
}

// containsAddr reports whether one of some prefixes contains an address.
func containsAddr(all []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Matches reports whether the rule is about a connection.
func (r Redirect) Matches(c Connection) bool {
	in := func(all []netip.Prefix, a netip.Addr) bool { return len(all) == 0 || containsAddr(all, a) }
	return in(r.From, c.Client.Addr()) && in(r.To, c.Server.Addr()) &&
		(len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(p PortRange) bool { return p.First <= c.Server.Port() && c.Server.Port() <= p.Last }))
}

// Selector is a part of what a rule matches. From and Ports that are zero are any.
type Selector struct {
	From, To netip.Prefix
	Ports    PortRange
}

// Selectors returns what selects the connections of a rule to some destinations. A destination can be selected by several.
func (r Redirect) Selectors(destinations []netip.Prefix) (all []Selector) {
	ports := r.Ports
	if len(ports) == 0 {
		ports = []PortRange{{}}
	}
	for _, to := range both(r.To, destinations) {
		from := []netip.Prefix{{}}
		if len(r.From) > 0 {
			from = slices.DeleteFunc(slices.Clone(r.From), func(p netip.Prefix) bool { return p.Addr().Is4() != to.Addr().Is4() })
		}
		for _, from := range from {
			for _, p := range ports {
				all = append(all, Selector{from, to, p})
			}
		}
	}
	return all
}

// both returns the prefixes that are in one of some and in one of others. No prefix in some is all.
func both(some, others []netip.Prefix) (all []netip.Prefix) {
	if len(some) == 0 {
		return others
	}
	for _, a := range some {
		for _, b := range others {
			switch {
			case !a.Overlaps(b):
			case a.Bits() >= b.Bits():
				all = append(all, a)
			default:
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
