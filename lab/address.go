package lab

import "net/netip"

// Addresses follow from the position of a link in the list, so that they can be read from the file:
// link n between two nodes has the networks 10.0.n.0/24 and fd00:0:0:n::/64, with .1 at its first end
// and .2 at its second. From the 256th link on, the second byte counts. A link may name its own
// networks instead.
//
// All nodes at switches that are connected with each other share a network: group n of switches, from
// 0 in the order of the first switch of each, has 10.(128+n).0.0/16 and fd00:0:1:n::/64, and its nodes
// have .0.1, .0.2 and so on, in the order of their links. A link may name the address of its node
// instead, which names the network of all of them.
//
// No two links share an address.

// end is one end of a link: indexes into Topology.Links and LinkSpec.Ends.
type end struct{ link, end int }

// segment is a network to which nodes are attached: a link between two nodes, or all links of switches
// that are connected with each other.
type segment struct {
	switched bool
	links    []int
	ends     []end // at nodes, in the order of links
	v4, v6   netip.Prefix
}

// addressing has the segments of a topology, and the addresses of its links' ends.
type addressing struct {
	segments []segment
	of       []int // segment of each link
	// The address of each link's ends, with the length of its network; the zero Prefix at a switch.
	v4, v6 [][2]netip.Prefix
}

func (t *Topology) addressing() *addressing {
	a := &addressing{of: make([]int, len(t.Links)), v4: make([][2]netip.Prefix, len(t.Links)), v6: make([][2]netip.Prefix, len(t.Links))}
	is, groups, number := t.isSwitch(), newParts(), map[string]int{}
	for _, l := range t.Links {
		if is(l.Ends[0]) && is(l.Ends[1]) {
			groups.join(l.Ends[0], l.Ends[1])
		}
	}
	for _, s := range t.Switches {
		if _, ok := number[groups.of(s.Name)]; !ok {
			number[groups.of(s.Name)] = len(number)
		}
	}
	at := map[string]int{} // the segment of each group
	for i, l := range t.Links {
		group := ""
		for _, name := range l.Ends {
			if is(name) {
				group = groups.of(name)
			}
		}
		n, ok := at[group]
		if group == "" || !ok {
			n = len(a.segments)
			s := segment{switched: group != ""}
			if s.switched {
				at[group] = n
				s.v4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + number[group])}), 16)
				s.v6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 5: 1, 7: byte(number[group])}), 64)
			} else {
				s.v4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
				s.v6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 6: byte(i >> 8), 7: byte(i)}), 64)
			}
			a.segments = append(a.segments, s)
		}
		s := &a.segments[n]
		a.of[i] = n
		s.links = append(s.links, i)
		for e := range 2 {
			if !is(l.Ends[e]) {
				s.ends = append(s.ends, end{i, e})
			}
		}
	}
	for n := range a.segments {
		s := &a.segments[n]
		s.v4 = t.assign(s, s.v4, a.v4, func(l LinkSpec) netip.Prefix { return l.IPv4 })
		s.v6 = t.assign(s, s.v6, a.v6, func(l LinkSpec) netip.Prefix { return l.IPv6 })
	}
	return a
}

// assign gives the ends of a segment their addresses of one IP version, and returns its network: that
// which a link names (own), or the default.
func (t *Topology) assign(s *segment, network netip.Prefix, to [][2]netip.Prefix, own func(LinkSpec) netip.Prefix) netip.Prefix {
	taken := map[netip.Addr]bool{}
	for i := len(s.links) - 1; i >= 0; i-- {
		if p := own(t.Links[s.links[i]]); p.IsValid() {
			network = p.Masked()
			taken[p.Addr()] = s.switched
		}
	}
	next := network.Addr()
	for _, e := range s.ends {
		if p := own(t.Links[e.link]); s.switched && p.IsValid() {
			to[e.link][e.end] = p
			continue
		}
		for next = next.Next(); taken[next]; {
			next = next.Next()
		}
		to[e.link][e.end] = netip.PrefixFrom(next, network.Bits())
	}
	return network
}
