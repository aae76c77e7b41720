package live

import (
	"cmp"
	"fmt"
	"time"

	"headgate.dev/headgate/fabric"
)

// configured is what an operator wrote of the network, with the numbers of ports that were written by name as far as the switches
// have reported them.
type configured struct {
	fabric.Config
	set        bool
	hostPorts  map[fabric.PortID]bool
	linkPorts  map[fabric.PortID]bool
	links      map[fabric.LinkID]fabric.Link // capacity 0 is not written
	complaints map[string]bool               // events were made of them
}

// Configure replaces what an operator wrote of the network. Switches that it does not accept are disconnected.
func (n *Network) Configure(c fabric.Config) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.config = configured{Config: c, set: true, complaints: map[string]bool{}}
	for id, s := range n.switches {
		if !c.Accepts(id) {
			go s.conn.Close() // detach forgets it
		}
	}
	n.bind()
	n.wires++
	n.replan()
}

// accepts returns why a switch may not connect, nil if it may. n.mu must be held.
func (n *Network) accepts(id fabric.DPID) error {
	if n.config.set && !n.config.Accepts(id) {
		return fmt.Errorf("switch %v is not in the network's file: add it to switches, or set unknown_switches: accept", id)
	}
	return nil
}

// bind finds the ports that were written by name, and configures the learners. n.mu must be held.
func (n *Network) bind() {
	if !n.config.set {
		return
	}
	ports, now := map[fabric.DPID][]fabric.Port{}, time.Now()
	for id, s := range n.switches {
		ports[id] = portsOf(s)
	}
	bound, mistakes := n.config.Bind(ports)
	for _, m := range mistakes {
		if text := m.Error(); !n.config.complaints[text] {
			n.config.complaints[text] = true
			n.event(fabric.Event{Kind: fabric.SwitchChanged, Text: text})
		}
	}
	c := &n.config
	c.hostPorts, c.linkPorts, c.links = map[fabric.PortID]bool{}, map[fabric.PortID]bool{}, map[fabric.LinkID]fabric.Link{}
	for _, s := range bound.Switches {
		for _, list := range []struct {
			names []fabric.PortName
			set   map[fabric.PortID]bool
		}{{s.HostPorts, c.hostPorts}, {s.LinkPorts, c.linkPorts}} {
			for _, p := range list.names {
				if id, ok := (fabric.PortRef{Switch: s.ID, Port: p}).ID(); ok {
					list.set[id] = true
				}
			}
		}
	}
	var cabling []fabric.LinkID
	for _, l := range bound.Links {
		id, ok := l.ID()
		if !ok {
			continue
		}
		cabling = append(cabling, id)
		back := l.Back
		if back == 0 {
			back = l.Capacity
		}
		c.links[id] = fabric.Link{LinkID: id, Capacity: l.Capacity, Cost: l.Cost}
		c.links[id.Reverse()] = fabric.Link{LinkID: id.Reverse(), Capacity: back, Cost: l.Cost}
	}
	n.events(n.links.Configure(cabling, now))
	var hosts []fabric.Host
	for _, h := range bound.Hosts {
		if one, ok := h.Host(); ok {
			hosts = append(hosts, one)
		}
	}
	n.events(n.hosts.Configure(hosts, now))
	var trusted []fabric.PortID
	for _, p := range bound.Trust {
		if id, ok := p.ID(); ok {
			trusted = append(trusted, id)
		}
	}
	n.hosts.SetBounds(cmp.Or(bound.HostsPerPort, fabric.DefaultHostsPerPort), trusted)
}

// label prints a port with the switch's name, if it has one. n.mu must be held.
func (n *Network) label(p fabric.PortID) string {
	if s, ok := n.config.Switch(p.Switch); ok && s.Name != "" {
		return s.Name + "/" + p.Port.String()
	}
	return p.String()
}

// isHostPort and isLinkPort report what an operator wrote of a port. n.mu must be held.
func (n *Network) isHostPort(p fabric.PortID) bool { return n.config.hostPorts[p] }
func (n *Network) isLinkPort(p fabric.PortID) bool { return n.config.linkPorts[p] }
