package program

import (
	"fmt"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Connectivity is what connects all hosts of a network.
type Connectivity struct {
	Topology *fabric.Topology
	Tree     *fabric.Tree
	Next     *fabric.NextHops
	// Labels are those of the switches (AssignLabels). A switch without one gets nothing.
	Labels map[fabric.DPID]uint16
	// HostPort reports whether hosts may be at a port. It is false for a port until it is known to have no link: a broadcast
	// over a link that is taken for a host would go round.
	HostPort func(fabric.PortID) bool
	// Remote returns the hosts to which those of a switch send; nil is all.
	Remote func(at fabric.DPID) []fabric.Host
}

// EtherTypes (IEEE 802 Numbers, IANA), and protocols.
const (
	etherARP  = 0x0806
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherLLDP = 0x88cc
	// etherVLAN is the tag of labels. That of a provider (0x88a8) would be right, but Open vSwitch matches both alike.
	etherVLAN = 0x8100

	protocolUDP    = 17
	protocolICMPv6 = 58
	solicitation   = 135 // RFC 4861, section 4.3
	advertisement  = 136 // RFC 4861, section 4.4
	portBOOTPS     = 67  // RFC 2131, section 4.1
)

// Program returns the program of a switch.
func (c *Connectivity) Program(id fabric.DPID) (Program, error) {
	s, ok := c.Topology.Switch(id)
	if !ok {
		return Program{}, fmt.Errorf("switch %v is not in the network", id)
	}
	if _, ok := c.Labels[id]; !ok {
		return Program{}, fmt.Errorf("switch %v has no label", id)
	}
	b := builder{Connectivity: c, at: s}
	b.arrivals()
	b.sources()
	b.destinations()
	b.labels()
	b.floods()
	return b.Program, nil
}

// builder makes the program of a switch.
type builder struct {
	*Connectivity
	Program
	at fabric.Switch
}

// add adds a flow of a kind of rule. about is a number for its cookie.
func (b *builder) add(t openflow.TableID, k Kind, about uint32, m openflow.Match, why string, do ...openflow.Instruction) {
	b.Flows = append(b.Flows, Flow{Table: t, Priority: priority(t, k), Match: m, Cookie: cookie(k, about), Instructions: do, Why: why})
}

func apply(actions ...openflow.Action) openflow.Instruction {
	return openflow.ApplyActions{Actions: actions}
}

func next(t openflow.TableID) openflow.Instruction { return openflow.GotoTable{Table: t} }

// output sends out of a port.
func output(p fabric.PortNo) openflow.Action { return openflow.Output{Port: openflow.PortNo(p)} }

// toController sends the whole packet to the controller.
func toController() openflow.Action {
	return openflow.Output{Port: openflow.PortController, MaxLen: openflow.NoBufferLen}
}

func (b *builder) linkPorts() (all []fabric.PortNo) {
	for _, p := range b.at.Ports {
		if b.Topology.CarriesLink(fabric.PortID{Switch: b.at.ID, Port: p.No}) {
			all = append(all, p.No)
		}
	}
	return all
}

func (b *builder) hostPorts() (all []fabric.PortNo) {
	for _, p := range b.at.Ports {
		if id := (fabric.PortID{Switch: b.at.ID, Port: p.No}); p.No != fabric.Local && !b.Topology.CarriesLink(id) && b.HostPort(id) {
			all = append(all, p.No)
		}
	}
	return all
}

// Discovery returns the flow that every program has, and that a switch needs before its program can be made: without it no link
// is found.
func Discovery() Flow {
	return Flow{
		Table: TablePort, Priority: priority(TablePort, KindDiscovery), Match: openflow.Match{openflow.EthType(etherLLDP)}, Cookie: cookie(KindDiscovery, 0),
		Instructions: openflow.Instructions{apply(toController())}, Why: "see links",
	}
}

// arrivals divides what arrives.
func (b *builder) arrivals() {
	b.Flows = append(b.Flows, Discovery())
	for _, p := range b.linkPorts() {
		b.add(TablePort, KindLinkPort, uint32(p), openflow.Match{openflow.InPort(openflow.PortNo(p)), openflow.AnyVLAN()}, fmt.Sprintf("carry what arrives over the link at port %v", p), next(TableLabel))
	}
	b.add(TablePort, KindNoLabel, 0, openflow.Match{openflow.VLANMasked(firstLabel, labelMask)}, "refuse labels of hosts")
	for _, p := range b.hostPorts() {
		b.add(TablePort, KindHostPort, uint32(p), openflow.Match{openflow.InPort(openflow.PortNo(p))}, fmt.Sprintf("let hosts at port %v send", p), next(TableSource))
	}
}

// sources lets known hosts send.
func (b *builder) sources() {
	b.add(TableSource, KindAddress, 1, openflow.Match{openflow.EthType(etherARP)}, "answer ARP", apply(toController()))
	for _, kind := range []uint8{solicitation, advertisement} {
		b.add(TableSource, KindAddress, uint32(kind), openflow.Match{openflow.EthType(etherIPv6), openflow.IPProto(protocolICMPv6), openflow.ICMPv6Type(kind)}, "answer neighbour discovery", apply(toController()))
	}
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			m := append(openflow.Match{openflow.InPort(openflow.PortNo(p)), openflow.EthSrc(openflow.MAC(h.MAC))}, vlan(h.VLAN))
			b.add(TableSource, KindKnown, uint32(p), m, fmt.Sprintf("let host %v at port %v send", h.HostID, p), next(TableMeter))
		}
	}
	b.add(TableSource, KindUnknown, 0, nil, "learn hosts", apply(toController()))
	b.add(TableMeter, KindNext, 0, nil, "pass what has no reservation", next(TableRedirect))
	for about, m := range []openflow.Match{
		{openflow.EthType(etherIPv4), openflow.IPProto(protocolUDP), openflow.UDPSrc(portBOOTPS)},
	} {
		b.add(TableRedirect, KindLease, uint32(about), m, "see leases of addresses", apply(toController()), next(TableDestination))
	}
	b.add(TableRedirect, KindNext, 0, nil, "pass what no relay carries", next(TableDestination))
}

// vlan matches frames in a VLAN, 0 is those without a tag.
func vlan(id uint16) openflow.Field {
	if id == 0 {
		return openflow.NoVLAN()
	}
	return openflow.VLAN(id)
}

// destinations finds the switches of hosts.
func (b *builder) destinations() {
	hosts := b.Topology.Hosts()
	if b.Remote != nil {
		hosts = b.Remote(b.at.ID)
	}
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			to := openflow.Match{openflow.EthDst(openflow.MAC(h.MAC)), vlan(h.VLAN)}
			b.add(TableDestination, KindLocal, uint32(p), to, fmt.Sprintf("find host %v at port %v", h.HostID, p), next(TableDeliver))
			b.add(TableDeliver, KindHost, uint32(p), to, fmt.Sprintf("deliver to host %v at port %v", h.HostID, p), apply(output(p)))
		}
	}
	for _, h := range hosts {
		label, ok := b.Labels[h.At.Switch]
		if h.At.Switch == b.at.ID || !ok || b.Next.At(b.at.ID, h.At.Switch).Best == 0 {
			continue
		}
		do := append(push(label), openflow.Group{Group: towardGroup(label)})
		b.add(TableDestination, KindRemote, uint32(label), openflow.Match{openflow.EthDst(openflow.MAC(h.MAC)), vlan(h.VLAN)}, fmt.Sprintf("send to host %v at switch %s", h.HostID, b.Topology.SwitchLabel(h.At.Switch)), apply(do...))
	}
	group := openflow.MAC{1}
	b.add(TableDestination, KindFlood, 0, openflow.Match{openflow.EthDstMasked(group, group)}, "send broadcast and multicast of hosts", apply(openflow.Group{Group: fromHostsGroup}))
	b.add(TableDestination, KindMiss, 0, nil, "ask for a host that this switch does not know", apply(toController()))
}

// push puts a label on a frame. The priority of a tag that the frame has is copied to the new one (OpenFlow 1.3.5, section
// 5.12), where it would be the mark.
func push(label uint16) []openflow.Action {
	return []openflow.Action{openflow.PushVLAN{EthType: etherVLAN}, openflow.SetField{Field: openflow.VLAN(label)}, openflow.SetField{Field: openflow.VLANPCP(0)}}
}

// labels carries frames between switches, as fabric.NextHop says.
func (b *builder) labels() {
	b.add(TableLabel, KindHere, uint32(b.Labels[b.at.ID]), openflow.Match{openflow.VLAN(b.Labels[b.at.ID])}, "take what is for hosts of this switch", apply(openflow.PopVLAN{}), next(TableDeliver))
	for _, d := range b.Topology.Switches() {
		label, ok := b.Labels[d.ID]
		n := b.Next.At(b.at.ID, d.ID)
		if !ok || n.Best == 0 {
			continue
		}
		to := b.Topology.SwitchLabel(d.ID)
		from := func(p fabric.PortNo, m ...openflow.Field) openflow.Match {
			return append(openflow.Match{openflow.InPort(openflow.PortNo(p))}, m...)
		}
		b.add(TableLabel, KindToward, uint32(label), openflow.Match{openflow.VLAN(label)}, "send to switch "+to, apply(openflow.Group{Group: towardGroup(label)}))
		b.protect(towardGroup(label), n, output(n.Backup), "send to switch "+to)
		if n.Hairpin {
			b.add(TableLabel, KindHairpin, uint32(label), from(n.Backup, openflow.VLAN(label)), "send to switch "+to+", back if need be", apply(openflow.Group{Group: hairpinGroup(label)}))
			b.protect(hairpinGroup(label), n, openflow.Output{Port: openflow.PortInPort}, "send to switch "+to+", back if need be")
		}
		marked := []openflow.Field{openflow.VLAN(label), openflow.VLANPCP(rerouted)}
		b.add(TableLabel, KindRerouted, uint32(label), marked, "send to switch "+to+" what took a backup", apply(output(n.Best)))
		if n.Detour != 0 {
			b.add(TableLabel, KindDetour, uint32(label), from(n.Best, marked...), "send around to switch "+to+" what took a backup", apply(output(n.Detour)))
		}
	}
}

// protect adds the group that sends by the best port while it is live, and marks what takes the backup.
func (b *builder) protect(id openflow.GroupID, n fabric.NextHop, backup openflow.Action, why string) {
	watch := func(p fabric.PortNo, actions ...openflow.Action) openflow.Bucket {
		return openflow.Bucket{WatchPort: openflow.PortNo(p), WatchGroup: openflow.GroupAny, Actions: actions}
	}
	g := Group{ID: id, Kind: openflow.GroupTypeFF, Buckets: []openflow.Bucket{watch(n.Best, output(n.Best))}, Why: why}
	if n.Backup != 0 {
		g.Buckets = append(g.Buckets, watch(n.Backup, openflow.SetField{Field: openflow.VLANPCP(rerouted)}, backup))
	}
	b.Groups = append(b.Groups, g)
}

// floods carries broadcast and multicast along the tree. A switch does not send out of the port at which a frame arrived.
func (b *builder) floods() {
	bucket := func(actions ...openflow.Action) openflow.Bucket {
		return openflow.Bucket{WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: actions}
	}
	fromHosts := Group{ID: fromHostsGroup, Kind: openflow.GroupTypeAll, Why: "send broadcast of hosts"}
	fromTree := Group{ID: fromTreeGroup, Kind: openflow.GroupTypeAll, Why: "send broadcast of other switches"}
	for _, p := range b.Tree.Ports(b.at.ID) {
		fromHosts.Buckets = append(fromHosts.Buckets, bucket(append(push(floodLabel), output(p))...))
		fromTree.Buckets = append(fromTree.Buckets, bucket(output(p)))
		b.add(TableLabel, KindFlood, uint32(p), openflow.Match{openflow.InPort(openflow.PortNo(p)), openflow.VLAN(floodLabel)}, fmt.Sprintf("carry broadcast from port %v of the tree", p), apply(openflow.Group{Group: fromTreeGroup}))
	}
	for _, p := range b.hostPorts() {
		fromHosts.Buckets = append(fromHosts.Buckets, bucket(output(p)))
		fromTree.Buckets = append(fromTree.Buckets, bucket(openflow.PopVLAN{}, output(p)))
	}
	b.Groups = append(b.Groups, fromHosts, fromTree)
}
