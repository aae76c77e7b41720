package collective

import (
	"net/netip"
	"slices"
)

// Policy defines a connection set and its control.
type Policy struct {
	// Name is unique among the sets.
	Name string
	// Cgroup is a path below the cgroup v2 mount. The set has the connections that
	// processes of the cgroup open or accept; "/" is all processes of the machine, and ""
	// none, in addition to connections that join.
	Cgroup string
	// Unit is a systemd unit whose cgroup is used instead of Cgroup.
	Unit string
	// Rules select among those connections: one rule must match. No rules match all.
	Rules []Rule
	// PerDestination makes one set for each remote address. Its connections are assumed
	// to have the same path (the seed, section III-A).
	PerDestination bool
	// PerBottleneck divides the set by the bottlenecks that its connections are found to share (Bottlenecks). A connection that shares none is by itself.
	PerBottleneck bool
	// Join is the users, by name or number, whose programs may pass connections to the
	// set. root may always.
	Join []string
	// Bottleneck is a name for a link that sets have in common. Sets with the same Bottleneck are controlled together: under congestion what they carry is in the
	// proportion of their SetWeight, which is above 0. "" is none.
	Bottleneck string
	SetWeight  float64
	// PaperControl selects the control cycle of the seed instead of Headgate's.
	PaperControl bool
}

// Rule matches a connection if all its fields do. The zero Rule matches every connection.
type Rule struct {
	// Local and Remote are prefixes of the addresses; the zero Prefix matches all.
	Local, Remote netip.Prefix
	// LocalPort and RemotePort are port ranges.
	LocalPort, RemotePort Ports
	// Weight is the configured weight of the connections whose first matching rule this
	// is; 0 is the learned rate.
	Weight float64
}

// Covers reports whether the rule matches every connection that another matches.
func (r Rule) Covers(o Rule) bool {
	prefix := func(wide, narrow netip.Prefix) bool {
		return !wide.IsValid() || narrow.IsValid() && wide.Bits() <= narrow.Bits() && wide.Contains(narrow.Addr())
	}
	ports := func(wide, narrow Ports) bool {
		return wide == Ports{} || narrow != Ports{} && wide.From <= narrow.From && narrow.To <= wide.To
	}
	return prefix(r.Local, o.Local) && prefix(r.Remote, o.Remote) && ports(r.LocalPort, o.LocalPort) && ports(r.RemotePort, o.RemotePort)
}

// MaxRules is the maximum number of rules of a Policy.
const MaxRules = 16

// Ports is the range From to To; zeros match all.
type Ports struct{ From, To uint16 }

// Contains reports whether a port is in the range.
func (p Ports) Contains(port uint16) bool {
	return p == Ports{} || p.From <= port && port <= p.To
}

// Matches reports whether the rule matches a connection between these ends.
func (r Rule) Matches(local, remote netip.AddrPort) bool {
	// Like the program in the kernel: an IPv6 prefix matches the IPv4 addresses that are
	// mapped into it.
	in := func(p netip.Prefix, a netip.Addr) bool {
		return !p.IsValid() || p.Contains(a) || p.Addr().Is6() && p.Contains(netip.AddrFrom16(a.As16()))
	}
	return in(r.Local, local.Addr()) && in(r.Remote, remote.Addr()) &&
		r.LocalPort.Contains(local.Port()) && r.RemotePort.Contains(remote.Port())
}

// Matches reports whether the rules select a connection between these ends.
func (p Policy) Matches(local, remote netip.AddrPort) bool {
	return len(p.Rules) == 0 || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Matches(local, remote) })
}

// Weight returns the configured weight of a connection between these ends; 0 is the
// learned rate.
func (p Policy) Weight(local, remote netip.AddrPort) float64 { return p.Rule(local, remote).Weight }

// Rule returns the first rule that matches a connection between these ends, or the zero Rule.
func (p Policy) Rule(local, remote netip.AddrPort) Rule {
	for _, r := range p.Rules {
		if r.Matches(local, remote) {
			return r
		}
	}
	return Rule{}
}
