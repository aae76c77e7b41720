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
	// Circuits are those of reservations, nil is none.
	Circuits *Circuits
}

// EtherTypes (IEEE 802 Numbers, IANA), and protocols.
const (
	etherARP  = 0x0806
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherLLDP = 0x88cc
	// etherVLAN is the tag of labels. That of a provider (0x88a8) would be right, but Open vSwitch matches both alike.
	etherVLAN = 0x8100

	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
	solicitation   = 135 // RFC 4861, section 4.3
	advertisement  = 136 // RFC 4861, section 4.4
	portBOOTPS     = 67  // RFC 2131, section 4.1
)

// Program returns the program of a switch.
func (c *Connectivity) Program(id fabric.DPID) (Program, error) { return c.Part(id, nil) }

// Part returns a part of the program of a switch.
func (c *Connectivity) Part(id fabric.DPID, part *Part) (Program, error) {
	s, ok := c.Topology.Switch(id)
	if !ok {
		return Program{}, fmt.Errorf("switch %v is not in the network", id)
	}
	if _, ok := c.Labels[id]; !ok {
		return Program{}, fmt.Errorf("switch %v has no label", id)
	}
	b := builder{Connectivity: c, at: s, form: formOf(s.Capabilities), part: part, leaving: c.Circuits.leaving(id)}
	b.labels()
	b.remotes()
	if part != nil && part.far {
		return b.Program, nil
	}
	b.controls()
	if b.form.flat {
		b.flat()
	} else {
		b.arrivals()
		b.sources()
		b.neighbours()
		b.deliveries()
	}
	b.floods()
	b.circuits()
	return b.Program, nil
}

// builder makes the program of a switch.
type builder struct {
	*Connectivity
	Program
	at   fabric.Switch
	form form
	part *Part
	// toward is how frames with a label leave.
	toward map[uint16]leave
	// leaving are the meters of what is not reserved.
	leaving map[fabric.PortNo]openflow.MeterID
}

// leave is how frames leave: to a group, or out of a port, which is the best one.
type leave struct {
	by fabric.PortNo
	do openflow.Action
}

// add adds a flow of a kind of rule. about is a number for its cookie.
func (b *builder) add(t openflow.TableID, k Kind, about uint32, m openflow.Match, why string, do ...openflow.Instruction) {
	b.Flows = append(b.Flows, newFlow(b.form.flat, t, k, about, m, why, do...))
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

// Reflection is the address of LLDP frames that a switch sends back to its neighbour, to show that it forwards although its
// controller does not reach it. It is locally administered (IEEE 802-2014, clause 8.2). LLDP is the address that they then have, of
// the nearest bridge (IEEE 802.1AB-2016, clause 7.1).
var (
	Reflection = openflow.MAC{0x4a, 0x48, 0x47, 0, 0, 1}
	LLDP       = openflow.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}
)

func (b *builder) reflect() {
	b.add(TablePort, KindReflect, 0, openflow.Match{openflow.EthType(etherLLDP), openflow.EthDst(Reflection)}, "show neighbours that this switch forwards",
		apply(openflow.SetField{Field: openflow.EthDst(LLDP)}, openflow.Output{Port: openflow.PortInPort}))
}

// arrivals divides what arrives.
func (b *builder) arrivals() {
	b.reflect()
	for _, p := range b.linkPorts() {
		b.add(TablePort, KindLinkPort, uint32(p), atPort(p, openflow.AnyVLAN()), fmt.Sprintf("carry what arrives over the link at port %v", p), next(TableLabel))
	}
	b.add(TablePort, KindNoLabel, 0, openflow.Match{openflow.VLANMasked(firstLabel, labelMask)}, "refuse labels of hosts")
	for _, p := range b.hostPorts() {
		b.add(TablePort, KindHostPort, uint32(p), atPort(p), fmt.Sprintf("let hosts at port %v send", p), next(TableSource))
	}
}

// sources lets known hosts send.
func (b *builder) sources() {
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			b.add(TableSource, KindKnown, uint32(p), atPort(p, openflow.EthSrc(openflow.MAC(h.MAC)), vlan(h.VLAN)), fmt.Sprintf("let host %v at port %v send", h.HostID, p), next(TableMeter))
		}
	}
	b.add(TableMeter, KindNext, 0, nil, "pass what has no reservation", next(TableRedirect))
	b.add(TableRedirect, KindNext, 0, nil, "pass what no relay carries", next(TableDestination))
}

// vlan matches frames in a VLAN, 0 is those without a tag.
func vlan(id uint16) openflow.Field {
	if id == 0 {
		return openflow.NoVLAN()
	}
	return openflow.VLAN(id)
}

// deliveries hands frames to the hosts of the switch.
func (b *builder) deliveries() {
	for _, p := range b.hostPorts() {
		for _, h := range b.Topology.HostsAt(fabric.PortID{Switch: b.at.ID, Port: p}) {
			to := openflow.Match{openflow.EthDst(openflow.MAC(h.MAC)), vlan(h.VLAN)}
			b.add(TableDestination, KindLocal, uint32(p), to, fmt.Sprintf("find host %v at port %v", h.HostID, p), next(TableDeliver))
			b.add(TableDeliver, KindHost, uint32(p), to, fmt.Sprintf("deliver to host %v at port %v", h.HostID, p), apply(output(p)))
		}
	}
	b.add(TableDestination, KindFlood, 0, openflow.Match{toGroup()}, "send broadcast and multicast of hosts", apply(b.fromHosts()...))
	b.add(TableLabel, KindHere, uint32(b.Labels[b.at.ID]), openflow.Match{openflow.VLAN(b.Labels[b.at.ID])}, "take what is for hosts of this switch", apply(openflow.PopVLAN{}), next(TableDeliver))
}

// remotes sends to the hosts of other switches.
func (b *builder) remotes() {
	hosts := b.Topology.Hosts()
	if b.part != nil {
		hosts = nil
		for _, id := range b.part.hosts {
			if h, ok := b.Topology.Host(id); ok {
				hosts = append(hosts, h)
			}
		}
	}
	for _, h := range hosts {
		label := b.Labels[h.At.Switch]
		out, ok := b.toward[label]
		if h.At.Switch == b.at.ID || !ok {
			continue
		}
		b.add(TableDestination, KindRemote, uint32(label), openflow.Match{openflow.EthDst(openflow.MAC(h.MAC)), vlan(h.VLAN)}, fmt.Sprintf("send to host %v at switch %s", h.HostID, b.Topology.SwitchLabel(h.At.Switch)), b.unreserved(out.by, apply(append(push(label), out.do)...))...)
	}
}

// toGroup matches frames to several hosts: broadcast and multicast.
func toGroup() openflow.Field {
	group := openflow.MAC{1}
	return openflow.EthDstMasked(group, group)
}

// push puts a label on a frame. The priority of a tag that the frame has is copied to the new one (OpenFlow 1.3.5, section
// 5.12), where it would be the mark.
func push(label uint16) []openflow.Action {
	return []openflow.Action{openflow.PushVLAN{EthType: etherVLAN}, openflow.SetField{Field: openflow.VLAN(label)}, openflow.SetField{Field: openflow.VLANPCP(0)}}
}

// labels carries frames between switches, as fabric.NextHop says.
func (b *builder) labels() {
	b.toward = map[uint16]leave{}
	for _, d := range b.Topology.Switches() {
		label := b.Labels[d.ID]
		if b.part != nil && !b.part.labels[label] {
			continue
		}
		t := b.form.toward(label, b.Next.At(b.at.ID, d.ID), b.leaving)
		if t == (toward{}) {
			continue
		}
		n, to := t.hop, b.Topology.SwitchLabel(d.ID)
		out := leave{n.Best, output(n.Best)}
		if t.protected {
			out.do = openflow.Group{Group: towardGroup(label)}
			b.protect(towardGroup(label), n, output(n.Backup), "send to switch "+to)
		}
		b.toward[label] = out
		b.add(TableLabel, KindToward, uint32(label), openflow.Match{openflow.VLAN(label)}, "send to switch "+to, b.unreserved(out.by, apply(out.do))...)
		if n.Hairpin {
			b.add(TableLabel, KindHairpin, uint32(label), atPort(n.Backup, openflow.VLAN(label)), "send to switch "+to+", back if need be", b.unreserved(n.Best, apply(openflow.Group{Group: hairpinGroup(label)}))...)
			b.protect(hairpinGroup(label), n, openflow.Output{Port: openflow.PortInPort}, "send to switch "+to+", back if need be")
		}
		marked := []openflow.Field{openflow.VLAN(label), openflow.VLANPCP(rerouted)}
		b.add(TableLabel, KindRerouted, uint32(label), marked, "send to switch "+to+" what took a backup", b.unreserved(n.Best, apply(output(n.Best)))...)
		if n.Detour != 0 {
			b.add(TableLabel, KindDetour, uint32(label), atPort(n.Best, marked...), "send around to switch "+to+" what took a backup", b.unreserved(n.Detour, apply(output(n.Detour)))...)
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
	for _, p := range b.Tree.Ports(b.at.ID) {
		b.add(TableLabel, KindTree, uint32(p), atPort(p, openflow.VLAN(floodLabel)), fmt.Sprintf("carry broadcast from port %v of the tree", p), apply(b.fromTree()...))
	}
	if !b.form.groups {
		return
	}
	bucket := func(actions ...openflow.Action) openflow.Bucket {
		return openflow.Bucket{WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: actions}
	}
	fromHosts := Group{ID: fromHostsGroup, Kind: openflow.GroupTypeAll, Why: "send broadcast of hosts"}
	fromTree := Group{ID: fromTreeGroup, Kind: openflow.GroupTypeAll, Why: "send broadcast of other switches"}
	for _, p := range b.Tree.Ports(b.at.ID) {
		fromHosts.Buckets = append(fromHosts.Buckets, bucket(append(push(floodLabel), output(p))...))
		fromTree.Buckets = append(fromTree.Buckets, bucket(output(p)))
	}
	for _, p := range b.hostPorts() {
		fromHosts.Buckets = append(fromHosts.Buckets, bucket(output(p)))
		fromTree.Buckets = append(fromTree.Buckets, bucket(openflow.PopVLAN{}, output(p)))
	}
	b.Groups = append(b.Groups, fromHosts, fromTree)
}

// fromHosts sends a frame of a host to all: a group does, or a list of outputs, each of which sends the frame as it is then.
func (b *builder) fromHosts() (do []openflow.Action) {
	if b.form.groups {
		return []openflow.Action{openflow.Group{Group: fromHostsGroup}}
	}
	for _, p := range b.hostPorts() {
		do = append(do, output(p))
	}
	for n, p := range b.Tree.Ports(b.at.ID) {
		if n == 0 {
			do = append(do, push(floodLabel)...)
		}
		do = append(do, output(p))
	}
	return do
}

// fromTree is fromHosts for a frame from another switch.
func (b *builder) fromTree() (do []openflow.Action) {
	if b.form.groups {
		return []openflow.Action{openflow.Group{Group: fromTreeGroup}}
	}
	for _, p := range b.Tree.Ports(b.at.ID) {
		do = append(do, output(p))
	}
	for n, p := range b.hostPorts() {
		if n == 0 {
			do = append(do, openflow.PopVLAN{})
		}
		do = append(do, output(p))
	}
	return do
}
