package program

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Flat is the pipeline of a switch with fewer tables: all rules are in table 0. What needs two look-ups of one frame is left out,
// because its rules would be one for each pair of hosts: Lost describes it. Frames between switches are the same in both forms.
//
// Frames of hosts come last in it, after a rule for each other port, so that no rule for a destination names a port. A port that
// is added is open to frames for known hosts until the next program.
var Flat = Table{TablePort, "all", "does all", []Rule{
	{3500, KindReflect, "LLDP to the address of reflection", "back to where it came from, with the address of LLDP"},
	{3000, KindDiscovery, "LLDP", "to the controller"},
	{2900, KindNoLabel, "each port without a link, with a VLAN that labels use", "drop"},
	{2800, KindHost, "the label of this switch, MAC of a host of it", "pop the label, out of its port"},
	{2780, KindArrive, "the label of a path that ends here, from its port, MAC of a host of a circuit", "pop the label, out of its port"},
	{2750, KindCarry, "the label of a path, from its port", "out of the next port of the path, by a group"},
	{2700, KindHere, "the label of this switch", "drop"},
	{2600, KindTree, "the label of broadcast, from a port of the tree", "out of all ports of the tree and, without the label, of hosts"},
	{2500, KindDetour, "the label of a switch, rerouted, from the port that leads there", "by the detour"},
	{2400, KindRerouted, "the label of a switch, rerouted", "by the port that leads there"},
	{2300, KindHairpin, "the label of a switch, from the port of the backup", "to the group of the switch that sends back"},
	{2200, KindToward, "the label of a switch", "to the group of the switch, or by the port that leads there"},
	{2000, KindClosed, "each port that has no hosts", "drop"},
	{1900, KindAddress, "ARP, neighbour solicitations and advertisements", "to the controller"},
	{1800, KindKnown, "broadcast and multicast, with port, MAC and VLAN of a known host", "out of all ports of hosts and, with the label of broadcast, of the tree"},
	{1700, KindUnknown, "broadcast and multicast", "to the controller"},
	{1610, KindCircuit, "port, VLAN, destination's MAC and traffic of a circuit; the more specific, the higher by up to 81", "through its meter, set the DSCP where asked, push the label of its path, out of the port of that, by a group"},
	{1600, KindLocal, "MAC and VLAN of a host of this switch", "out of its port"},
	{1500, KindRemote, "MAC and VLAN of a host of another switch", "push the label of its switch, to the group of that switch or by the port that leads there"},
	{0, KindMiss, "everything else", "to the controller"},
}}

// flat makes what differs from the tables.
func (b *builder) flat() {
	b.reflect()
	b.flatPorts()
	b.flatHosts()
	label := b.Labels[b.at.ID]
	b.add(TableLabel, KindHere, uint32(label), openflow.Match{openflow.VLAN(label)}, "drop what is for no host of this switch")
}

// atPort matches what arrives at a port.
func atPort(p fabric.PortNo, more ...openflow.Field) openflow.Match {
	return append(openflow.Match{openflow.InPort(openflow.PortNo(p))}, more...)
}

// flatPorts keeps what is not of hosts from the rules below.
func (b *builder) flatPorts() {
	hosts := b.hostPorts()
	all := b.at.Ports
	if b.at.Capabilities.Local && !slices.ContainsFunc(all, func(p fabric.Port) bool { return p.No == fabric.Local }) {
		all = append(all[:len(all):len(all)], fabric.Port{No: fabric.Local})
	}
	for _, p := range all {
		if !b.Topology.CarriesLink(fabric.PortID{Switch: b.at.ID, Port: p.No}) {
			b.add(TablePort, KindNoLabel, uint32(p.No), atPort(p.No, openflow.VLANMasked(firstLabel, labelMask)), fmt.Sprintf("refuse labels of hosts at port %v", p.No))
		}
		if !slices.Contains(hosts, p.No) {
			b.add(TablePort, KindClosed, uint32(p.No), atPort(p.No), fmt.Sprintf("take nothing of hosts from port %v", p.No))
		}
	}
}

// flatHosts lets the hosts of the switch send, and delivers to them.
func (b *builder) flatHosts() {
	flood := apply(b.fromHosts()...)
	macs, ports := []fabric.MAC(nil), map[fabric.MAC]openflow.Actions{}
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			b.add(TableSource, KindKnown, uint32(p), atPort(p, openflow.EthSrc(openflow.MAC(h.MAC)), vlan(h.VLAN), toGroup()), fmt.Sprintf("send broadcast and multicast of host %v at port %v", h.HostID, p), flood)
			b.add(TableDestination, KindLocal, uint32(p), openflow.Match{openflow.EthDst(openflow.MAC(h.MAC)), vlan(h.VLAN)}, fmt.Sprintf("deliver to host %v at port %v", h.HostID, p), apply(output(p)))
			if ports[h.MAC] == nil {
				macs, ports[h.MAC] = append(macs, h.MAC), openflow.Actions{openflow.PopVLAN{}}
			}
			if !slices.Contains(ports[h.MAC], output(p)) {
				ports[h.MAC] = append(ports[h.MAC], output(p))
			}
		}
	}
	// A label hides the VLAN of a host. What is for a MAC with several is sent to all its ports: hosts drop what is in
	// another VLAN.
	label := b.Labels[b.at.ID]
	for _, mac := range macs {
		b.add(TableDeliver, KindHost, uint32(label), openflow.Match{openflow.VLAN(label), openflow.EthDst(openflow.MAC(mac))}, fmt.Sprintf("deliver to host %v", mac), apply(ports[mac]...))
	}
}
