package live

import (
	"net/netip"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// packetIn takes a frame that a switch has sent to the controller. n.mu must be held.
func (n *Network) packetIn(s *attached, m *openflow.PacketIn) {
	n.counters.PacketIns++
	in, ok := m.Match.Get(openflow.FieldInPort)
	kind, ours := program.KindOf(m.Cookie)
	if !ok || !ours {
		return
	}
	at, now := fabric.PortID{Switch: s.id, Port: fabric.PortNo(in.Uint())}, time.Now()
	p := n.ports[at]
	if p != nil && p.ready && kind == program.KindWatch {
		n.begins(s, at, m.Data, now)
		return
	}
	if p != nil && p.ready && kind == program.KindReset {
		n.reset(s, at, m.Data)
		return
	}
	if p == nil || !p.ready && kind != program.KindDiscovery || !n.allowed(s, at, kind.Class(), now) {
		return
	}
	if kind == program.KindDiscovery {
		if !n.relayAnnounced(at, m.Data, now) {
			n.discovered(at, m.Data, now)
		}
		return
	}
	f, ok := parse(m.Data)
	if !ok {
		return
	}
	if kind == program.KindLease {
		if mac, a, ok := lease(m.Data); ok {
			n.leased(fabric.HostID{MAC: mac, VLAN: f.vlan}, a, now)
		}
		return
	}
	id := fabric.HostID{MAC: f.src, VLAN: f.vlan}
	before, owned := n.hosts.Owner(f.asked, f.vlan)
	if !n.observe(fabric.Sighting{HostID: id, Addrs: f.owns, At: at, By: f.by}, now) {
		return
	}
	switch {
	case f.dst == controllerMAC: // an answer
	case f.announces() && n.owns(id, f.asked): // other hosts may still send to who had the address before
		if owned && before != id {
			n.flood(at, f)
		}
	case f.by == fabric.FromARP || f.by == fabric.FromNDP:
		n.resolve(at, f)
	default:
		n.forward(at, f)
	}
}

// owns reports whether an address belongs to a host. n.mu must be held.
func (n *Network) owns(id fabric.HostID, a netip.Addr) bool {
	owner, ok := n.hosts.Owner(a, id.VLAN)
	return ok && owner == id
}

// observe passes a sighting on to the learner, and reports whether the host is there. n.mu must be held.
func (n *Network) observe(s fabric.Sighting, now time.Time) bool {
	ok, found := n.hosts.Observe(s, now)
	if len(found) > 0 {
		n.events(found)
		n.replan()
	}
	return ok
}

// leased takes the address that a DHCP server has given to a host. n.mu must be held.
func (n *Network) leased(id fabric.HostID, a netip.Addr, now time.Time) {
	if h, ok := n.hosts.Host(id); ok {
		n.observe(fabric.Sighting{HostID: id, Addrs: []netip.Addr{a}, At: h.At, By: fabric.FromDHCP}, now)
	}
}

// owner returns the host that has an address. n.mu must be held.
func (n *Network) owner(a netip.Addr, vlan uint16) (fabric.Host, bool) {
	if n.plan == nil {
		return fabric.Host{}, false
	}
	return n.plan.Topology.HostWith(a, vlan)
}

// resolve answers who asks for an address, or asks at all ports of hosts. An answer goes to who has asked.
func (n *Network) resolve(at fabric.PortID, f frame) {
	if f.reply {
		n.forward(at, f)
		return
	}
	h, ok := n.owner(f.asked, f.vlan)
	if ok && h.MAC == f.src {
		return
	}
	if !ok || n.ports[h.At] == nil {
		n.flood(at, f)
		return
	}
	n.counters.Answered++
	to := n.switches[at.Switch]
	if f.by == fabric.FromARP {
		n.out(to, at.Port, arp(2, f.src, f.vlan, h.MAC, f.asked, f.src, f.ip))
		return
	}
	dst, ip := f.src, f.ip
	if ip.IsUnspecified() { // who asks whether the address is free hears that it is not (RFC 4862, section 5.4)
		dst, ip = fabric.MAC{0x33, 0x33, 0, 0, 0, 1}, netip.MustParseAddr("ff02::1")
	}
	n.out(to, at.Port, neighbour(136, dst, f.vlan, h.MAC, f.asked, ip, f.asked))
}

// forward sends a frame on to its destination, for which the switch has no rule yet.
func (n *Network) forward(at fabric.PortID, f frame) {
	if f.dst.Group() {
		n.flood(at, f)
		return
	}
	if n.plan == nil {
		return
	}
	h, ok := n.plan.Topology.Host(fabric.HostID{MAC: f.dst, VLAN: f.vlan})
	if !ok {
		n.flood(at, f)
		return
	}
	if s := n.switches[h.At.Switch]; s != nil && h.At != at {
		n.out(s, h.At.Port, finished(f.data))
	}
}

// flood sends a frame out of all other ports of hosts, unless there are too many.
func (n *Network) flood(at fabric.PortID, f frame) {
	if !n.mayFlood(at, time.Now()) {
		return
	}
	f.data = finished(f.data)
	copies := 0
	out := map[fabric.DPID]openflow.Actions{}
	for id, p := range n.ports {
		if p.ready && id != at {
			out[id.Switch] = append(out[id.Switch], openflow.Output{Port: openflow.PortNo(id.Port)})
			copies++
		}
	}
	n.flooded(copies)
	for id, actions := range out {
		if s := n.switches[id]; s != nil {
			_ = s.conn.Send(&openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortController, Actions: actions, Data: f.data})
		}
	}
}

// askAtOldPort asks a host that was observed elsewhere whether it is still where it was. n.mu must be held.
func (n *Network) askAtOldPort(id fabric.HostID) {
	h, ok := n.hosts.Host(id)
	s := n.switches[h.At.Switch]
	if !ok || s == nil {
		return
	}
	n.askHost(s, h)
}

// hostsPerTick is how many silent hosts are asked in a tick, so that those of a large network, which a leader may have found all at
// once, do not answer at once.
const hostsPerTick = 50

// askSilent asks hosts whether they still have their addresses. Switches pass on what hosts ask each other, so that the controller
// can have seen nothing of a host that is there. n.mu must be held.
func (n *Network) askSilent() {
	for _, h := range n.hosts.Silent(hostsPerTick) {
		if s := n.switches[h.At.Switch]; s != nil {
			n.askHost(s, h)
		}
	}
}

// askHost asks a host at its port for its addresses. n.mu must be held.
func (n *Network) askHost(s *attached, h fabric.Host) {
	for _, a := range h.Addrs {
		if a.Is4() { // a probe, which claims no address (RFC 5227, section 1.1)
			n.out(s, h.At.Port, arp(1, h.MAC, h.VLAN, controllerMAC, netip.IPv4Unspecified(), fabric.MAC{}, a))
			continue
		}
		n.out(s, h.At.Port, neighbour(135, h.MAC, h.VLAN, controllerMAC, controllerAddr, solicitedNode(a), a))
	}
}

// solicitedNode returns the multicast address to which who asks for an address sends (RFC 4291, section 2.7.1).
func solicitedNode(a netip.Addr) netip.Addr {
	group := netip.MustParseAddr("ff02::1:ff00:0").As16()
	of := a.As16()
	copy(group[13:], of[13:])
	return netip.AddrFrom16(group)
}

// controllerMAC is the sender of the controller's own questions.
var controllerMAC = fabric.MAC(program.Asker)

// controllerAddr is its address in neighbour discovery, made of the MAC (RFC 4291, appendix A). What a host answers goes to it alone: to
// a question without an address hosts would answer to all.
var controllerAddr = netip.MustParseAddr("fe80::48:47ff:fe00:1")
