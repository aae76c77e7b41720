package collective

import (
	"net/netip"
	"slices"
)

// Policy is which connections are one set, and how they are kept in proportion.
type Policy struct {
	// Name is for people, and unlike any other set's.
	Name string
	// Cgroup is a path below the cgroup v2 mount: the connections that its processes open or
	// accept; "/" is every process of the machine, and "" none, beside those that join.
	Cgroup string
	// Unit is a unit of systemd, whose cgroup it is instead.
	Unit string
	// Rules choose among those: one of them has to be true. None is all.
	Rules []Rule
	// PerDestination makes a set of its own of the connections to each address: they are
	// taken to have one path (the seed, section III-A).
	PerDestination bool
	// Join is the users, by name or number, whose programs may pass connections of theirs to
	// be in the set; root always may.
	Join []string
	// Seed is the seed's own cycle instead of ours.
	Seed bool
}

// Rule is true of a connection if all of it is; the zero Rule is true of every one.
type Rule struct {
	// Local and Remote hold the addresses; the zero Prefix holds all.
	Local, Remote netip.Prefix
	// LocalPort and RemotePort hold the ports.
	LocalPort, RemotePort Ports
	// Weight is by hand that of a connection of which this rule is the first to be true; 0
	// is what it needs.
	Weight float64
}

// MaxRules is how many a Policy may have.
const MaxRules = 16

// Ports are those from From to To; zeros are all.
type Ports struct{ From, To uint16 }

// Holds tells whether a port is among them.
func (p Ports) Holds(port uint16) bool {
	return p == Ports{} || p.From <= port && port <= p.To
}

// Holds tells whether the rule is true of a connection between these ends.
func (r Rule) Holds(local, remote netip.AddrPort) bool {
	// As the kernel's program does: a prefix of IPv6 holds the IPv4 addresses that are mapped
	// into it.
	in := func(p netip.Prefix, a netip.Addr) bool {
		return !p.IsValid() || p.Contains(a) || p.Addr().Is6() && p.Contains(netip.AddrFrom16(a.As16()))
	}
	return in(r.Local, local.Addr()) && in(r.Remote, remote.Addr()) &&
		r.LocalPort.Holds(local.Port()) && r.RemotePort.Holds(remote.Port())
}

// Holds tells whether the rules choose a connection between these ends.
func (p Policy) Holds(local, remote netip.AddrPort) bool {
	return len(p.Rules) == 0 || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Holds(local, remote) })
}

// Weight is the weight by hand of a connection between these ends; 0 is what it needs.
func (p Policy) Weight(local, remote netip.AddrPort) float64 {
	for _, r := range p.Rules {
		if r.Holds(local, remote) {
			return r.Weight
		}
	}
	return 0
}
