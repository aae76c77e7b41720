package fabric

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

// memory describes a network of switches in memory. The same description gives the same network.
type memory struct {
	Switches int `json:"switches"`
	// Cables between switches are twice as many links. They connect all switches, and no two switches have two.
	Cables int    `json:"cables"`
	Hosts  int    `json:"hosts"` // distributed over the switches, each at its own port
	Seed   uint64 `json:"seed"`
	// Controllers are HOST:PORT.
	Controllers []string `json:"controllers"`
}

// memoryEnd is a port of a switch in memory. Switches count from 0, and have the datapath id after that.
type memoryEnd struct {
	sw int
	no uint32
}

func (e memoryEnd) id() uint64 { return memoryID(e.sw) }

// firstMemory is the lowest datapath id, so that real switches can be in the same network.
const firstMemory = 0x1000

func memoryID(sw int) uint64 { return firstMemory + uint64(sw) }

func (e memoryEnd) port() fabric.PortID {
	return fabric.PortID{Switch: fabric.DPID(e.id()), Port: fabric.PortNo(e.no)}
}

// plan is the cables and the ports of hosts.
type plan struct {
	cables [][2]memoryEnd
	hosts  []memoryEnd
	ports  []uint32 // how many each switch has
}

// plan computes the network. Ports of cables come first.
func (m memory) plan() plan {
	p := plan{ports: make([]uint32, m.Switches)}
	r := rand.New(rand.NewPCG(m.Seed, 1))
	next := func(sw int) memoryEnd {
		p.ports[sw]++
		return memoryEnd{sw, p.ports[sw]}
	}
	seen := map[[2]int]bool{}
	add := func(a, b int) {
		key := [2]int{min(a, b), max(a, b)}
		if a != b && !seen[key] {
			seen[key] = true
			p.cables = append(p.cables, [2]memoryEnd{next(a), next(b)})
		}
	}
	for n := 1; n < m.Switches; n++ {
		add(r.IntN(n), n)
	}
	for len(p.cables) < min(m.Cables, m.Switches*(m.Switches-1)/2) {
		add(r.IntN(m.Switches), r.IntN(m.Switches))
	}
	for n := range m.Hosts {
		p.hosts = append(p.hosts, next(n%m.Switches))
	}
	return p
}

// expected returns what a controller has to show.
func (p plan) expected() expected {
	e := newExpected()
	for sw := range p.ports {
		e.Switches[fmt.Sprintf("%016x", memoryID(sw))] = true
	}
	for _, c := range p.cables {
		e.cable(portOf(c[0].id(), c[0].no), portOf(c[1].id(), c[1].no))
	}
	for _, h := range p.hosts {
		e.Hosts[portOf(h.id(), h.no)] = true
	}
	return e
}

// topology returns the network without one of its cables; -1 is none.
func (p plan) topology(but int) (*fabric.Topology, error) {
	var parts fabric.Parts
	for sw, n := range p.ports {
		s := fabric.Switch{ID: fabric.DPID(memoryID(sw))}
		for no := range n {
			s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(no + 1), State: fabric.Up})
		}
		parts.Switches = append(parts.Switches, s)
	}
	for n, c := range p.cables {
		if n == but {
			continue
		}
		for _, l := range []fabric.LinkID{{From: c[0].port(), To: c[1].port()}, {From: c[1].port(), To: c[0].port()}} {
			parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: unit.Gbit, Cost: fabric.DefaultCost})
		}
	}
	return fabric.New(parts)
}

// build makes the switches, cables and hosts.
func (p plan) build() (n *oftest.Network, cables []*oftest.Cable, hosts []*oftest.Host, err error) {
	n = oftest.NewNetwork()
	var all []*oftest.Switch
	for sw, ports := range p.ports {
		s := n.AddSwitch("", oftest.Options{DatapathID: memoryID(sw)})
		for no := range ports {
			if err := s.AddPort(oftest.PortOptions{No: openflow.PortNo(no + 1), Down: true, Speed: unit.Gbit}); err != nil {
				return nil, nil, nil, err
			}
		}
		all = append(all, s)
	}
	for _, c := range p.cables {
		one, err := n.AddCable(oftest.End{Switch: all[c[0].sw], Port: openflow.PortNo(c[0].no)}, oftest.End{Switch: all[c[1].sw], Port: openflow.PortNo(c[1].no)}, oftest.CableOptions{})
		if err != nil {
			return nil, nil, nil, err
		}
		cables = append(cables, one)
	}
	for i, at := range p.hosts {
		one, err := n.AddHost(oftest.HostOptions{
			MAC:   openflow.MAC{2, 0, 1, 0, byte(i >> 8), byte(i)},
			Addrs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 16)},
			Keep:  1,
		}, oftest.End{Switch: all[at.sw], Port: openflow.PortNo(at.no)}, oftest.CableOptions{})
		if err != nil {
			return nil, nil, nil, err
		}
		hosts = append(hosts, one)
	}
	return n, cables, hosts, nil
}
