package lab

import (
	"fmt"
	"net/netip"
	"time"

	"headgate/unit"
)

// Addresses follow from a link's place in the list, so that they can be read off
// the file: link n has 10.0.n.0/24 and fd00:0:0:n::/64, its first end .1, its
// second .2. From the 256th link on the second byte counts.

func prefix4(link int, end int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(link >> 8), byte(link), byte(end + 1)}), 24)
}

func prefix6(link int, end int) netip.Prefix {
	a := [16]byte{0: 0xfd, 6: byte(link >> 8), 7: byte(link), 15: byte(end + 1)}
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// devices are the names of each link's two devices: what they lead to. A second
// link between the same nodes gets "-2".
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

// hop is a route: to the network of link Net by the node's own link Via, whose
// end there is End.
type hop struct{ Net, Via, End int }

// routes are a node's routes to every network that it is not on, by the fewest
// links; of equal paths the one whose links come first in the file. Hosts do not
// forward, so paths run through routers only.
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

// Device is one end of a link, as Up makes it.
type Device struct {
	Node      string       `json:"node"`
	Namespace string       `json:"namespace"`
	Device    string       `json:"device"`
	To        string       `json:"to"`
	IPv4      netip.Prefix `json:"ipv4"`
	IPv6      netip.Prefix `json:"ipv6"`
	// Rate and Delay are of what the device sends; 0 is unlimited.
	Rate  unit.Rate     `json:"rate"`
	Delay time.Duration `json:"delay_ns"`
}

// Devices lists every device of the topology, link by link.
func (t *Topology) Devices() (out []Device) {
	names := t.devices()
	for i, l := range t.Links {
		for end, p := range [2]Path{l.Forward, l.Back} {
			out = append(out, Device{
				Node: l.Ends[end], Namespace: namespaceName(t.Name, l.Ends[end]), Device: names[i][end], To: l.Ends[1-end],
				IPv4: prefix4(i, end), IPv6: prefix6(i, end), Rate: p.Rate, Delay: p.Delay,
			})
		}
	}
	return out
}
