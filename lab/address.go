package lab

import (
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/unit"
)

// Addresses follow from the position of a link in the list, so that they can be read from the file:
// link n has the networks 10.0.n.0/24 and fd00:0:0:n::/64, with .1 at its first end and .2 at its
// second. From the 256th link on, the second byte counts. A link may name its own networks instead.
//
// No two links share an address. Routes are computed over the whole network (routes), so that each hop
// brings a packet closer to its destination: a topology cannot contain a routing loop.

// networks returns the IPv4 and IPv6 networks of link i.
func (t *Topology) networks(i int) (v4, v6 netip.Prefix) {
	v4, v6 = t.Links[i].IPv4, t.Links[i].IPv6
	if !v4.IsValid() {
		v4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
	}
	if !v6.IsValid() {
		v6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 6: byte(i >> 8), 7: byte(i)}), 64)
	}
	return v4, v6
}

func (t *Topology) prefix4(i, end int) netip.Prefix {
	v4, _ := t.networks(i)
	return host(v4, end)
}

func (t *Topology) prefix6(i, end int) netip.Prefix {
	_, v6 := t.networks(i)
	return host(v6, end)
}

// host returns the first or second address of a network, with the network's prefix length.
func host(network netip.Prefix, end int) netip.Prefix {
	a := network.Masked().Addr().Next()
	if end == 1 {
		a = a.Next()
	}
	return netip.PrefixFrom(a, network.Bits())
}

// addressProblems finds networks that are too small for two hosts, that cannot be assigned to hosts,
// or that overlap those of another link.
func (t *Topology) addressProblems(add adder) {
	type taken struct {
		network netip.Prefix
		link    int
	}
	var all []taken
	names := t.LinkNames()
	for i, l := range t.Links {
		for _, own := range []struct {
			key     string
			network netip.Prefix
			longest int
		}{{"ipv4", l.IPv4, 30}, {"ipv6", l.IPv6, 126}} {
			where, p := fmt.Sprintf("links[%d].addresses.%s", i, own.key), own.network
			switch a := p.Addr(); {
			case !p.IsValid():
			case a.Is4() != (own.key == "ipv4"):
				add(where, "%v is of the other IP version", p)
			case p != p.Masked():
				add(where, "%v is an address in a network: write the network, %v", p, p.Masked())
			case p.Bits() > own.longest || p.Bits() < 8:
				add(where, "%v is too small for two ends: use a length of 8 to %d", p, own.longest)
			case a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.Is4() && a.As4()[0] >= 240 || a.Is4() && a.As4()[0] == 0:
				add(where, "addresses in %v cannot be assigned to hosts: use for example 192.0.2.0/24 or fd00:1::/64", p)
			}
		}
		v4, v6 := t.networks(i)
		for _, p := range []netip.Prefix{v4, v6} {
			for _, other := range all {
				if !p.Overlaps(other.network) {
					continue
				}
				// The error is reported at the link that names the network.
				at, with := i, other
				if l.IPv4 != p && l.IPv6 != p {
					at, with = other.link, taken{p, i}
				}
				key, mine := "ipv4", t.Links[at].IPv4
				if p.Addr().Is6() {
					key, mine = "ipv6", t.Links[at].IPv6
				}
				add(fmt.Sprintf("links[%d].addresses.%s", at, key), "%v overlaps %v of link %s: choose a network that no other link has", mine, with.network, names[with.link])
			}
			all = append(all, taken{p, i})
		}
	}
}

// devices returns the names of each link's two devices. A device has the name of the node at the other
// end; a second link between the same nodes has "-2" appended.
func (t *Topology) devices() [][2]string {
	out := make([][2]string, len(t.Links))
	used := map[[2]string]int{}
	for i, l := range t.Links {
		for end := range 2 {
			own, peer := l.Ends[end], l.Ends[1-end]
			used[[2]string{own, peer}]++
			out[i][end] = peer
			if n := used[[2]string{own, peer}]; n > 1 {
				out[i][end] = fmt.Sprintf("%s-%d", peer, n)
			}
		}
	}
	return out
}

// hop is a route to the network of link Net through the node's link Via, of which the other end is
// End.
type hop struct{ Net, Via, End int }

// routes returns a node's routes to every network that it is not attached to, over the fewest links.
// Of equally long paths it takes the one whose links come first in the file. Hosts do not forward, so
// paths run through routers only.
func (t *Topology) routes(node string) []hop {
	router := map[string]bool{}
	for _, n := range t.Nodes {
		router[n.Name] = n.Router
	}
	type seen struct{ via, end int } // the first link of the path to a node
	first := map[string]seen{node: {-1, 0}}
	reached := map[int]bool{}
	var out []hop
	queue := []string{node}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at != node && !router[at] {
			continue
		}
		for i, l := range t.Links {
			for end := range 2 {
				if l.Ends[end] != at {
					continue
				}
				peer, f := l.Ends[1-end], first[at]
				if !reached[i] {
					reached[i] = true
					if at != node {
						out = append(out, hop{i, f.via, f.end})
					}
				}
				if _, ok := first[peer]; ok {
					continue
				}
				if at == node {
					f = seen{i, end}
				}
				first[peer] = f
				queue = append(queue, peer)
			}
		}
	}
	return out
}

// Device is one end of a link in a lab.
type Device struct {
	Node      string       `json:"node"`
	Namespace string       `json:"namespace"`
	Device    string       `json:"device"`
	To        string       `json:"to"`
	IPv4      netip.Prefix `json:"ipv4"`
	IPv6      netip.Prefix `json:"ipv6"`
	// Link is the name of the device's link, Backend its backend.
	Link    string  `json:"link"`
	Backend Backend `json:"backend"`
	// Rate and Delay apply to what the device sends; 0 is unlimited.
	Rate  unit.Rate     `json:"rate"`
	Delay time.Duration `json:"delay_ns"`
}

// Devices returns every device of the topology, link by link.
func (t *Topology) Devices() (out []Device) {
	names, links, backends := t.devices(), t.LinkNames(), t.Backends()
	for i, l := range t.Links {
		for end, p := range [2]Path{l.Forward, l.Back} {
			out = append(out, Device{
				Node: l.Ends[end], Namespace: namespaceName(t.Name, l.Ends[end]), Device: names[i][end], To: l.Ends[1-end],
				IPv4: t.prefix4(i, end), IPv6: t.prefix6(i, end), Link: links[i], Backend: backends[i], Rate: p.Rate, Delay: p.Delay,
			})
		}
	}
	return out
}
