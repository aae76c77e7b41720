package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// version is what differs between the IP versions in the check of addresses.
type version struct {
	key     string
	longest int // prefix length of the smallest network
	own     func(LinkSpec) netip.Prefix
	network func(*segment) netip.Prefix
}

var versions = []version{
	{"ipv4", 30, func(l LinkSpec) netip.Prefix { return l.IPv4 }, func(s *segment) netip.Prefix { return s.v4 }},
	{"ipv6", 126, func(l LinkSpec) netip.Prefix { return l.IPv6 }, func(s *segment) netip.Prefix { return s.v6 }},
}

// addressProblems finds networks that are too small, that cannot be assigned to hosts, or that overlap
// another, and addresses at switches that are not in one network.
func (t *Topology) addressProblems(add adder) {
	a := t.addressing()
	for i, l := range t.Links {
		s := &a.segments[a.of[i]]
		for _, v := range versions {
			where, p := fmt.Sprintf("links[%d].addresses.%s", i, v.key), v.own(l)
			if !p.IsValid() {
				continue
			}
			switch at := p.Addr(); {
			case at.Is4() != (v.key == "ipv4"):
				add(where, "%v is of the other IP version", p)
			case s.switched && !s.atNode(i):
				add(where, "a link between two switches has no addresses: leave addresses out")
			case !s.switched && p != p.Masked():
				add(where, "%v is an address in a network: write the network, %v", p, p.Masked())
			case s.switched && (p == p.Masked() || at.Is4() && !p.Contains(at.Next())):
				add(where, "%v is not the address of a node in a network: write for example %v", p, netip.PrefixFrom(p.Masked().Addr().Next(), p.Bits()))
			case p.Bits() > v.longest || p.Bits() < 8:
				add(where, "%v is too small for two ends: use a length of 8 to %d", p, v.longest)
			case at.IsLoopback() || at.IsMulticast() || at.IsLinkLocalUnicast() || at.IsUnspecified() || at.Is4() && at.As4()[0] >= 240 || at.Is4() && at.As4()[0] == 0:
				add(where, "addresses in %v cannot be assigned to hosts: use for example 192.0.2.0/24 or fd00:1::/64", p)
			}
		}
	}
	for n := range a.segments {
		for _, v := range versions {
			t.sharedProblems(&a.segments[n], v, add)
			t.overlapProblems(a, n, v, add)
		}
	}
}

// atNode reports whether a link of a segment has an end at a node.
func (s *segment) atNode(link int) bool {
	return slices.ContainsFunc(s.ends, func(e end) bool { return e.link == link })
}

// sharedProblems finds addresses of nodes at switches that are not in the network of the others, or
// that another node has, and networks that are too small for all nodes.
func (t *Topology) sharedProblems(s *segment, v version, add adder) {
	network, first := v.network(s), s.named(t, v)
	if !s.switched || first < 0 {
		return
	}
	names, taken := t.LinkNames(), map[netip.Addr]int{}
	for _, e := range s.ends {
		p := v.own(t.Links[e.link])
		if !p.IsValid() {
			continue
		}
		where := fmt.Sprintf("links[%d].addresses.%s", e.link, v.key)
		if p.Masked() != network {
			add(where, "%v is not in %v, the network of link %s at the same switches: write an address in it", p, network, names[first])
		} else if other, ok := taken[p.Addr()]; ok {
			add(where, "%v is the address of link %s, too: write another", p.Addr(), names[other])
		}
		taken[p.Addr()] = e.link
	}
	// Without the addresses of the network itself and, in IPv4, of all its hosts.
	if bits := network.Addr().BitLen() - network.Bits(); bits < 16 && len(s.ends) > 1<<bits-2 {
		add(fmt.Sprintf("links[%d].addresses.%s", first, v.key), "%v is too small for %d nodes at the same switches: use a shorter length", network, len(s.ends))
	}
}

// named returns the first link of a segment that names its network, or -1.
func (s *segment) named(t *Topology, v version) int {
	for _, i := range s.links {
		if v.own(t.Links[i]).IsValid() {
			return i
		}
	}
	return -1
}

// title returns the name of a segment in messages.
func (s *segment) title(t *Topology) string {
	if !s.switched {
		return "link " + t.LinkNames()[s.links[0]]
	}
	var names []string
	for _, spec := range t.Switches {
		if slices.ContainsFunc(s.links, func(i int) bool { return slices.Contains(t.Links[i].Ends[:], spec.Name) }) {
			names = append(names, spec.Name)
		}
	}
	return "switches " + strings.Join(names, ", ")
}

// overlapProblems finds earlier segments whose network overlaps that of segment n. The error is
// reported at the link that names the network.
func (t *Topology) overlapProblems(a *addressing, n int, v version, add adder) {
	own := &a.segments[n]
	for i := range n {
		other := &a.segments[i]
		if !v.network(own).Overlaps(v.network(other)) {
			continue
		}
		mine, with := own, other
		at := own.named(t, v)
		if at < 0 {
			mine, with, at = other, own, other.named(t, v)
		}
		if at >= 0 {
			add(fmt.Sprintf("links[%d].addresses.%s", at, v.key), "%v overlaps %v of %s: choose a network that no other link has", v.network(mine), v.network(with), with.title(t))
		}
	}
}
