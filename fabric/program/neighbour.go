package program

import (
	"fmt"
	"net/netip"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// A host confirms from time to time that a neighbour is still there: it asks the neighbour alone (RFC 4861, section 7.3.3; RFC 1122,
// section 2.3.2.1). Linux does so every half minute for traffic that nothing else confirms. Without a controller these questions
// must pass, or else all connections end within a minute.
//
// They pass if all that they say of their sender is what the host at the port is known to have. The controller sees none of them, so
// that hosts need not wait for it. The rest goes to the controller: questions to all, other senders, and unicast solicitations
// without the address of the sender's interface, which Linux does not send. A match for those would be a zero nd_sll. Open vSwitch
// also has a zero there if a frame contradicts itself with two addresses.

// Asker is the MAC with which the controller asks hosts whether they are still there. What they answer goes to the controller. It is
// locally administered (IEEE 802-2014, clause 8.2).
var Asker = openflow.MAC{0x02, 0x48, 0x47, 0, 0, 1}

// neighbours lets hosts of the switch ask each other, and answer.
func (b *builder) neighbours() {
	if !b.form.senders {
		return
	}
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			for _, a := range h.Addrs {
				for _, sender := range senderOf(openflow.MAC(h.MAC), a) {
					from := atPort(p, toOne(), openflow.EthSrc(openflow.MAC(h.MAC)), vlan(h.VLAN))
					b.add(TableSource, KindNeighbour, uint32(p), append(from, sender...), fmt.Sprintf("let host %v at port %v confirm neighbours as %v", h.HostID, p, a), next(TableDestination))
				}
			}
		}
	}
}

// senderOf matches the frames in which a host with an address asks or answers.
func senderOf(mac openflow.MAC, a netip.Addr) []openflow.Match {
	if a.Is4() {
		return []openflow.Match{{openflow.EthType(etherARP), openflow.ARPSPA(netip.PrefixFrom(a, 32)), openflow.ARPSHA(mac)}}
	}
	discovery := func(kind uint8, more ...openflow.Field) openflow.Match {
		return append(openflow.Match{openflow.EthType(etherIPv6), openflow.IPProto(protocolICMPv6), openflow.ICMPv6Type(kind)}, more...)
	}
	return []openflow.Match{
		discovery(solicitation, openflow.IPv6Src(netip.PrefixFrom(a, 128)), openflow.IPv6NDSLL(mac)),
		discovery(advertisement, openflow.IPv6NDTarget(a), openflow.IPv6NDTLL(mac)),
		// Linux leaves the address of the interface out of what it answers to one that asks it alone (RFC 4861, section
		// 7.2.4). The target is zero in a frame that contradicts itself.
		discovery(advertisement, openflow.IPv6NDTarget(a), openflow.IPv6NDTLL(openflow.MAC{})),
	}
}

// SenderOf returns the address for which a flow of KindNeighbour is, none for other flows.
func SenderOf(m openflow.Match) []netip.Addr {
	for _, id := range []openflow.FieldID{openflow.FieldARPSPA, openflow.FieldIPv6NDTarget, openflow.FieldIPv6Src} {
		if f, ok := m.Get(id); ok {
			return []netip.Addr{f.Addr()}
		}
	}
	return nil
}

// toOne matches frames to one host.
func toOne() openflow.Field { return openflow.EthDstMasked(openflow.MAC{}, openflow.MAC{1}) }
