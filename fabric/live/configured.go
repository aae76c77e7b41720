package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// configured is what an operator wrote of the network, with the numbers of ports that were written by name as far as the switches
// have reported them.
type configured struct {
	fabric.Config
	set        bool
	switches   map[fabric.DPID]fabric.SwitchConfig
	hostPorts  map[fabric.PortID]bool
	linkPorts  map[fabric.PortID]bool
	links      map[fabric.LinkID]fabric.Link // capacity 0 is not written
	complaints map[string]bool               // events were made of them
	written    map[fabric.DPID][]fabric.WrittenPort
	missing    map[fabric.DPID]map[fabric.PortRef]fabric.Fault // ports that are written, and that a connected switch does not have
	named      map[fabric.DPID]bool                            // switches of which ports are written by name
}

// Switch returns what is written of a switch. It is that of fabric.Config with an index: each port that is printed asks for one.
func (c *configured) Switch(id fabric.DPID) (fabric.SwitchConfig, bool) {
	s, ok := c.switches[id]
	return s, ok
}

// errReplaced is why the channel of a switch is closed that has connected again.
var errReplaced = errors.New("the switch has connected again")

// Configure replaces what an operator wrote of the network. Switches that it does not accept are disconnected.
func (n *Network) Configure(c fabric.Config) { n.configure(c, true) }

// Unconfigure takes back what an operator wrote. The network has no name, and accepts every switch.
func (n *Network) Unconfigure() {
	n.configure(fabric.Config{AcceptUnknown: true, HostsPerPort: fabric.DefaultHostsPerPort}, false)
}

// configure replaces the configuration. set reports whether an operator wrote it.
func (n *Network) configure(c fabric.Config, set bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, measured := n.known(), n.config.Measured
	n.config = configured{Config: c, set: set, switches: map[fabric.DPID]fabric.SwitchConfig{}, complaints: map[string]bool{}, named: withNamedPorts(c), written: c.WrittenPorts(), missing: map[fabric.DPID]map[fabric.PortRef]fabric.Fault{}}
	for _, s := range c.Switches {
		n.config.switches[s.ID] = s
	}
	for id, s := range n.switches {
		if why := n.accepts(id); why != nil {
			go s.conn.CloseFor(why) // detach forgets it
		}
	}
	maps.DeleteFunc(n.absent, func(id fabric.DPID, _ absent) bool { return !c.Accepts(id) })
	n.bind()
	for _, s := range n.switches {
		n.checkPorts(s)
	}
	n.compare(before, time.Now())
	n.remeasured(measured)
	n.wires++
	n.replan()
}

// remeasured makes events of measured capacities that are others than before. n.mu must be held.
func (n *Network) remeasured(before map[fabric.LinkID]unit.Rate) {
	now := n.config.Measured
	all := maps.Clone(before)
	if all == nil {
		all = map[fabric.LinkID]unit.Rate{}
	}
	maps.Copy(all, now)
	for _, l := range slices.SortedFunc(maps.Keys(all), fabric.LinkID.Compare) {
		if before[l] == now[l] {
			continue
		}
		text := fmt.Sprintf("link %s -> %s has %v, which was measured", n.label(l.From), n.label(l.To), now[l])
		if now[l] == 0 {
			text = fmt.Sprintf("link %s -> %s has its own capacity again, and not the measured %v", n.label(l.From), n.label(l.To), before[l])
		}
		n.event(fabric.Event{Kind: fabric.CapacityChanged, Link: l, Text: text})
	}
}

// accepts returns why a switch may not connect, nil if it may. n.mu must be held.
func (n *Network) accepts(id fabric.DPID) error {
	if !n.config.set {
		return (*fabric.Config)(nil).Admit(id)
	}
	return n.config.Admit(id)
}

// withNamedPorts returns the switches of which ports are written by name.
func withNamedPorts(c fabric.Config) map[fabric.DPID]bool {
	all := map[fabric.DPID]bool{}
	add := func(refs ...fabric.PortRef) {
		for _, r := range refs {
			if r.Port.Name != "" {
				all[r.Switch] = true
			}
		}
	}
	for _, s := range c.Switches {
		for _, p := range slices.Concat(s.HostPorts, s.LinkPorts) {
			add(fabric.PortRef{Switch: s.ID, Port: p})
		}
	}
	for _, l := range c.Links {
		add(l.Ends[:]...)
	}
	for _, h := range c.Hosts {
		add(h.At)
	}
	add(c.Trust...)
	return all
}

// bindPortsOf binds what was written of a switch whose ports may have changed, if it was written by name. n.mu must be held.
func (n *Network) bindPortsOf(id fabric.DPID) {
	if n.config.named[id] {
		n.bind()
	}
}

// bind finds the ports that were written by name, and configures the learners. n.mu must be held.
func (n *Network) bind() {
	ports, now := map[fabric.DPID][]fabric.Port{}, time.Now()
	for id, s := range n.switches {
		ports[id] = portsOf(s)
	}
	bound, mistakes := n.config.Bind(ports)
	for _, m := range mistakes {
		if !n.config.set {
			break // without a configuration there is no name, and no listener of it
		}
		if text := m.Error(); !n.config.complaints[text] {
			n.config.complaints[text] = true
			n.event(fabric.Event{Kind: fabric.SwitchChanged, Text: text})
		}
	}
	bound = bound.Switched()
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
		c.links[id] = fabric.Link{LinkID: id, Capacity: l.Capacity, Cost: l.Cost, Reservable: l.Reservable}
		c.links[id.Reverse()] = fabric.Link{LinkID: id.Reverse(), Capacity: back, Cost: l.Cost, Reservable: l.Reservable}
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
	for id, p := range n.ports {
		switch {
		case n.isHostPort(id) && (p.heard || !p.ready):
			p.ready, p.heard = true, false
			n.events(n.links.PortDown(id, now))
			n.wires++
			n.replan()
		case n.isLinkPort(id) && p.ready:
			p.ready = false
			n.discoverNow(id)
			n.replan()
		}
	}
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
