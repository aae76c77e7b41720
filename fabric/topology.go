package fabric

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Topology is a network at one moment. It never changes, so that any number of goroutines can read it: a change is a
// new Topology, and Diff compares the two. Slices that it returns must not be modified.
type Topology struct {
	parts    Parts
	index    map[DPID]int32
	named    map[string]int32
	ports    map[PortID]Port
	leaving  map[PortID]int32 // the index of the link
	arriving map[PortID]int32
	hosts    map[HostID]int32
	addrs    map[vlanAddr]int32
	hostsAt  map[PortID][]Host
	graph    graph
}

type vlanAddr struct {
	vlan uint16
	addr netip.Addr
}

// New checks the parts (check.go), and returns the network that they form. The error joins one *Invalid for each
// mistake.
func New(parts Parts) (*Topology, error) {
	if err := check(parts); err != nil {
		return nil, err
	}
	t := &Topology{
		parts: clone(parts),
		index: map[DPID]int32{}, named: map[string]int32{}, ports: map[PortID]Port{},
		leaving: map[PortID]int32{}, arriving: map[PortID]int32{},
		hosts: map[HostID]int32{}, addrs: map[vlanAddr]int32{}, hostsAt: map[PortID][]Host{},
	}
	for i, s := range t.parts.Switches {
		t.index[s.ID] = int32(i)
		if s.Name != "" {
			t.named[s.Name] = int32(i)
		}
		for _, p := range s.Ports {
			t.ports[PortID{s.ID, p.No}] = p
		}
	}
	for i, l := range t.parts.Links {
		t.leaving[l.From], t.arriving[l.To] = int32(i), int32(i)
	}
	for i, h := range t.parts.Hosts {
		t.hosts[h.HostID] = int32(i)
		t.hostsAt[h.At] = append(t.hostsAt[h.At], h)
		for _, a := range h.Addrs {
			t.addrs[vlanAddr{h.VLAN, a}] = int32(i)
		}
	}
	t.graph = newGraph(t)
	return t, nil
}

// clone copies the parts and sorts them, so that the caller's slices stay the caller's, and results do not depend on
// their order.
func clone(p Parts) Parts {
	p = Parts{slices.Clone(p.Sites), slices.Clone(p.Switches), slices.Clone(p.Links), slices.Clone(p.Hosts)}
	slices.SortFunc(p.Sites, func(a, b Site) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Switches, func(a, b Switch) int { return cmp.Compare(a.ID, b.ID) })
	for i := range p.Switches {
		ports := slices.Clone(p.Switches[i].Ports)
		slices.SortFunc(ports, func(a, b Port) int { return cmp.Compare(a.No, b.No) })
		p.Switches[i].Ports = ports
	}
	slices.SortFunc(p.Links, func(a, b Link) int { return a.LinkID.Compare(b.LinkID) })
	slices.SortFunc(p.Hosts, func(a, b Host) int { return a.HostID.Compare(b.HostID) })
	for i := range p.Hosts {
		addrs := slices.Clone(p.Hosts[i].Addrs)
		slices.SortFunc(addrs, netip.Addr.Compare)
		p.Hosts[i].Addrs = addrs
	}
	return p
}

// Sites returns all sites, by name.
func (t *Topology) Sites() []Site { return t.parts.Sites }

// Switches returns all switches, by datapath id.
func (t *Topology) Switches() []Switch { return t.parts.Switches }

// Links returns all links, in the order of their identities, whether they are usable or not.
func (t *Topology) Links() []Link { return t.parts.Links }

// Hosts returns all hosts, in the order of their identities.
func (t *Topology) Hosts() []Host { return t.parts.Hosts }

// Switch returns the switch with a datapath id.
func (t *Topology) Switch(id DPID) (Switch, bool) {
	i, ok := t.index[id]
	if !ok {
		return Switch{}, false
	}
	return t.parts.Switches[i], true
}

// SwitchNamed returns the switch with a name.
func (t *Topology) SwitchNamed(name string) (Switch, bool) {
	i, ok := t.named[name]
	if !ok {
		return Switch{}, false
	}
	return t.parts.Switches[i], true
}

// Port returns a port.
func (t *Topology) Port(id PortID) (Port, bool) {
	p, ok := t.ports[id]
	return p, ok
}

// PortNamed returns the port that an operator wrote: the name or the datapath id of a switch, or the name of a router, a
// slash, and the number or the name of the port, as in s1/3, s1/eth3 and r1/eth0.
func (t *Topology) PortNamed(text string) (PortID, bool) {
	at, port, _ := strings.Cut(text, "/")
	name, err := ParsePortName(port)
	s, ok := t.SwitchNamed(at)
	if id, err := ParseDPID(at); !ok && err == nil {
		s, ok = t.Switch(id)
	}
	i := slices.IndexFunc(s.Ports, func(p Port) bool {
		return name.Name != "" && p.Name == name.Name || name.Name == "" && p.No == name.No
	})
	if err != nil || !ok || i < 0 {
		return PortID{}, false
	}
	return PortID{s.ID, s.Ports[i].No}, true
}

// Link returns the link with an identity.
func (t *Topology) Link(id LinkID) (Link, bool) {
	l, ok := t.LinkFrom(id.From)
	if !ok || l.To != id.To {
		return Link{}, false
	}
	return l, true
}

// LinkFrom returns the link that leaves a port.
func (t *Topology) LinkFrom(p PortID) (Link, bool) {
	i, ok := t.leaving[p]
	if !ok {
		return Link{}, false
	}
	return t.parts.Links[i], true
}

// CarriesLink reports whether a link leaves or arrives at a port. Such a port has no hosts.
func (t *Topology) CarriesLink(p PortID) bool {
	_, leaves := t.leaving[p]
	_, arrives := t.arriving[p]
	return leaves || arrives
}

// Usable reports whether a link carries traffic: the ports at both ends are up.
func (t *Topology) Usable(id LinkID) bool {
	_, ok := t.Link(id)
	return ok && t.ports[id.From].State == Up && t.ports[id.To].State == Up
}

// Host returns a host.
func (t *Topology) Host(id HostID) (Host, bool) {
	i, ok := t.hosts[id]
	if !ok {
		return Host{}, false
	}
	return t.parts.Hosts[i], true
}

// HostWith returns the host that has an address in a VLAN.
func (t *Topology) HostWith(addr netip.Addr, vlan uint16) (Host, bool) {
	i, ok := t.addrs[vlanAddr{vlan, addr}]
	if !ok {
		return Host{}, false
	}
	return t.parts.Hosts[i], true
}

// HostsAt returns the hosts at a port.
func (t *Topology) HostsAt(p PortID) []Host { return t.hostsAt[p] }

// SwitchLabel returns the name of a switch, or its datapath id if it has none.
func (t *Topology) SwitchLabel(id DPID) string {
	if s, ok := t.Switch(id); ok && s.Name != "" {
		return s.Name
	}
	return id.String()
}

// PortLabel returns the switch's label, the port's number, and its name if it has one: s1/3 (eth3). Of a router it returns
// the name and the interface: r1/eth0.
func (t *Topology) PortLabel(p PortID) string {
	port, ok := t.ports[p]
	if ok && p.Switch.IsRouter() {
		return t.SwitchLabel(p.Switch) + "/" + port.Name
	}
	label := t.SwitchLabel(p.Switch) + "/" + p.Port.String()
	if ok && port.Name != "" {
		label += " (" + port.Name + ")"
	}
	return label
}
