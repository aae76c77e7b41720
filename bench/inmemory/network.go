// Package inmemory has networks of OpenFlow switches in memory, in a child process: their processor time is neither the controller's nor the
// bench's.
package inmemory

import (
	"math/rand/v2"
	"net/netip"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

// Network describes a network of switches in memory. The same description gives the same network.
type Network struct {
	Switches int `json:"switches"`
	// Cables between switches are twice as many links. They connect all switches, and no two switches have two.
	Cables int    `json:"cables"`
	Hosts  int    `json:"hosts"` // distributed over the switches, each at its own port
	Seed   uint64 `json:"seed"`
	// Controllers are HOST:PORT.
	Controllers []string `json:"controllers"`
}

// End is a port of a switch in memory. Switches count from 0, and have the datapath id after that.
type End struct {
	Switch int
	No     uint32
}

// ID is the datapath id of its switch.
func (e End) ID() uint64 { return ID(e.Switch) }

// first is the lowest datapath id, so that real switches can be in the same network.
const first = 0x1000

// ID is the datapath id of a switch.
func ID(sw int) uint64 { return first + uint64(sw) }

// Port is the port as the controller knows it.
func (e End) Port() fabric.PortID {
	return fabric.PortID{Switch: fabric.DPID(e.ID()), Port: fabric.PortNo(e.No)}
}

// Plan is the cables and the ports of hosts.
type Plan struct {
	Cables [][2]End
	Hosts  []End
	Ports  []uint32 // how many each switch has
}

// Plan computes the network. Ports of cables come first.
func (m Network) Plan() Plan {
	p := Plan{Ports: make([]uint32, m.Switches)}
	r := rand.New(rand.NewPCG(m.Seed, 1))
	next := func(sw int) End {
		p.Ports[sw]++
		return End{sw, p.Ports[sw]}
	}
	seen := map[[2]int]bool{}
	add := func(a, b int) {
		key := [2]int{min(a, b), max(a, b)}
		if a != b && !seen[key] {
			seen[key] = true
			p.Cables = append(p.Cables, [2]End{next(a), next(b)})
		}
	}
	for n := 1; n < m.Switches; n++ {
		add(r.IntN(n), n)
	}
	for len(p.Cables) < min(m.Cables, m.Switches*(m.Switches-1)/2) {
		add(r.IntN(m.Switches), r.IntN(m.Switches))
	}
	for n := range m.Hosts {
		p.Hosts = append(p.Hosts, next(n%m.Switches))
	}
	return p
}

// Topology returns the network without one of its cables; -1 is none.
func (p Plan) Topology(but int) (*fabric.Topology, error) {
	var parts fabric.Parts
	for sw, n := range p.Ports {
		s := fabric.Switch{ID: fabric.DPID(ID(sw))}
		for no := range n {
			s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(no + 1), State: fabric.Up})
		}
		parts.Switches = append(parts.Switches, s)
	}
	for n, c := range p.Cables {
		if n == but {
			continue
		}
		for _, l := range []fabric.LinkID{{From: c[0].Port(), To: c[1].Port()}, {From: c[1].Port(), To: c[0].Port()}} {
			parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: unit.Gbit, Cost: fabric.DefaultCost})
		}
	}
	return fabric.New(parts)
}

// build makes the switches, cables and hosts.
func (p Plan) build() (n *oftest.Network, cables []*oftest.Cable, hosts []*oftest.Host, err error) {
	n = oftest.NewNetwork()
	var all []*oftest.Switch
	for sw, ports := range p.Ports {
		s := n.AddSwitch("", oftest.Options{DatapathID: ID(sw)})
		for no := range ports {
			if err := s.AddPort(oftest.PortOptions{No: openflow.PortNo(no + 1), Down: true, Speed: unit.Gbit}); err != nil {
				return nil, nil, nil, err
			}
		}
		all = append(all, s)
	}
	for _, c := range p.Cables {
		one, err := n.AddCable(oftest.End{Switch: all[c[0].Switch], Port: openflow.PortNo(c[0].No)}, oftest.End{Switch: all[c[1].Switch], Port: openflow.PortNo(c[1].No)}, oftest.CableOptions{})
		if err != nil {
			return nil, nil, nil, err
		}
		cables = append(cables, one)
	}
	for i, at := range p.Hosts {
		one, err := n.AddHost(oftest.HostOptions{
			MAC:   openflow.MAC{2, 0, 1, 0, byte(i >> 8), byte(i)},
			Addrs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 16)},
			Keep:  1,
		}, oftest.End{Switch: all[at.Switch], Port: openflow.PortNo(at.No)}, oftest.CableOptions{})
		if err != nil {
			return nil, nil, nil, err
		}
		hosts = append(hosts, one)
	}
	return n, cables, hosts, nil
}
