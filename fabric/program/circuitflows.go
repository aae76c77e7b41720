package program

import (
	"fmt"
	"math"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// The groups of circuits in a switch: one for each route, by its label, and one for each circuit that has several.
const (
	firstRoute   = firstGroup + 0x4000
	firstChoice  = firstRoute + openflow.GroupID(pathLabels)
	choiceGroups = uint32(lastGroup - firstChoice + 1)
	numberMask   = uint64(math.MaxUint32) // of the number of a circuit in the metadata
)

func routeGroup(l PathLabel) openflow.GroupID { return firstRoute + openflow.GroupID(l.index()) }

// circuits adds what the switch does for circuits.
func (b *builder) circuits() {
	c := b.Circuits
	if c == nil {
		return
	}
	b.Meters = append(b.Meters, c.Limits(b.at.ID, nil)...)
	grouped := b.routesWithGroups(c)
	for _, h := range c.hops[b.at.ID] {
		b.hop(h, grouped)
	}
	sends := map[PathLabel]openflow.Actions{}
	for _, one := range c.begins[b.at.ID] {
		if one.leaves != 0 {
			continue // unreserved has its meter
		}
		var ways []openflow.Actions
		for _, w := range one.ways {
			if sends[w.label] == nil {
				sends[w.label] = b.send(w, grouped[w.label])
			}
			ways = append(ways, sends[w.label])
		}
		b.begin(one, ways)
	}
}

// unreserved returns the instructions for traffic without a circuit that the switch sends to another one by a port: with the meter
// of that port, if it has one. A failover to another port keeps the meter.
func (b *builder) unreserved(by fabric.PortNo, do openflow.Instruction) []openflow.Instruction {
	if meter := b.leaving[by]; meter != 0 {
		return []openflow.Instruction{openflow.Meter{Meter: meter}, do}
	}
	return []openflow.Instruction{do}
}

// leaving returns the meters of what is not reserved, by the port by which a switch sends it.
func (c *Circuits) leaving(id fabric.DPID) map[fabric.PortNo]openflow.MeterID {
	if c == nil {
		return nil
	}
	all := map[fabric.PortNo]openflow.MeterID{}
	for _, one := range c.begins[id] {
		if one.leaves != 0 {
			all[one.leaves] = one.meter
		}
	}
	return all
}

// routesWithGroups returns the routes that have a group in the switch. What labels of switches can need is left to those.
func (b *builder) routesWithGroups(c *Circuits) map[PathLabel]bool {
	var labels []PathLabel
	for _, h := range c.hops[b.at.ID] {
		if h.out != 0 {
			labels = append(labels, h.label)
		}
	}
	for _, one := range c.begins[b.at.ID] {
		for _, w := range one.ways {
			labels = append(labels, w.label)
		}
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	labels = labels[:min(len(labels), max(b.form.backup-2*MaxSwitches, 0))]
	grouped := make(map[PathLabel]bool, len(labels))
	for _, l := range labels {
		grouped[l] = true
	}
	return grouped
}

// exit is a way out of the switch, which is live while its port is.
type exit struct {
	port fabric.PortNo
	do   openflow.Actions
}

// failover adds a group that takes the first exit whose port is live, and returns the actions to it. Without groups it is the first.
func (b *builder) failover(group bool, id openflow.GroupID, why string, exits []exit) openflow.Actions {
	if !group {
		return exits[0].do
	}
	g := Group{ID: id, Kind: openflow.GroupTypeFF, Why: why}
	used := map[fabric.PortNo]bool{0: true}
	for _, e := range exits {
		if used[e.port] {
			continue
		}
		used[e.port] = true
		g.Buckets = append(g.Buckets, openflow.Bucket{WatchPort: openflow.PortNo(e.port), WatchGroup: openflow.GroupAny, Actions: e.do})
	}
	b.Groups = append(b.Groups, g)
	return openflow.Actions{openflow.Group{Group: id}}
}

// bestEffort returns the exits by which the switch sends a frame to another one that takes no path of a circuit, with what gives it the label.
// The frame arrived at a port, or is of a host if that is 0.
func (b *builder) bestEffort(to fabric.DPID, in, dead fabric.PortNo, label func(vid uint16, pcp uint8) openflow.Actions) (all []exit) {
	n, vid := b.Next.At(b.at.ID, to), b.Labels[to]
	if vid == 0 {
		return nil
	}
	add := func(p fabric.PortNo, pcp uint8) {
		if p == 0 || p == dead {
			return
		}
		out := output(p)
		if p == in {
			out = openflow.Output{Port: openflow.PortInPort}
		}
		all = append(all, exit{p, append(label(vid, pcp), out)})
	}
	add(n.Best, 0)
	add(n.Backup, rerouted)
	return all
}

// send returns how the first switch sends by a route.
func (b *builder) send(w way, group bool) openflow.Actions {
	tag := func(vid uint16, pcp uint8) openflow.Actions {
		return openflow.Actions{openflow.PushVLAN{EthType: etherVLAN}, openflow.SetField{Field: openflow.VLAN(vid)}, openflow.SetField{Field: openflow.VLANPCP(pcp)}}
	}
	exits := []exit{{w.out, append(tag(w.label.vid(), w.label.pcp()), output(w.out))}}
	if w.instead != 0 {
		exits = append(exits, exit{w.instead, append(tag(w.spare.vid(), w.spare.pcp()), output(w.instead))})
	}
	exits = append(exits, b.bestEffort(w.to, 0, w.out, tag)...)
	return b.failover(group, routeGroup(w.label), fmt.Sprintf("send by the path with label %d to switch %s", w.label, b.Topology.SwitchLabel(w.to)), exits)
}

// hop adds what a switch after the first does.
func (b *builder) hop(h hop, group map[PathLabel]bool) {
	match := atPort(h.in, h.label.fields()...)
	to := b.Topology.SwitchLabel(h.to)
	if h.out != 0 {
		retag := func(vid uint16, pcp uint8) openflow.Actions {
			return openflow.Actions{openflow.SetField{Field: openflow.VLAN(vid)}, openflow.SetField{Field: openflow.VLANPCP(pcp)}}
		}
		why := fmt.Sprintf("carry the path with label %d to switch %s", h.label, to)
		exits := append([]exit{{h.out, openflow.Actions{output(h.out)}}}, b.bestEffort(h.to, h.in, h.out, retag)...)
		do := []openflow.Instruction{apply(b.failover(group[h.label], routeGroup(h.label), why, exits)...)}
		if h.rest {
			do = b.unreserved(h.out, do[0])
		}
		b.add(TableLabel, KindCarry, uint32(h.label), match, why, do...)
		return
	}
	why := fmt.Sprintf("take what the path with label %d brings to hosts of this switch", h.label)
	if !b.form.flat {
		b.add(TableLabel, KindArrive, uint32(h.label), match, why, apply(openflow.PopVLAN{}), next(TableDeliver))
		return
	}
	for n := 0; n < len(h.deliver); {
		d := h.deliver[n]
		do := openflow.Actions{openflow.PopVLAN{}}
		for ; n < len(h.deliver) && h.deliver[n].mac == d.mac; n++ {
			do = append(do, output(h.deliver[n].out))
		}
		b.add(TableLabel, KindArrive, uint32(h.label), append(slices.Clone(match), openflow.EthDst(openflow.MAC(d.mac))), why, apply(do...))
	}
}

// begin adds a circuit at its first switch, which sends by some ways.
func (b *builder) begin(c begin, ways []openflow.Actions) {
	var send openflow.Actions
	switch len(ways) {
	case 0:
	case 1:
		send = ways[0]
	default:
		g := Group{ID: c.choice, Kind: openflow.GroupTypeSelect, Why: fmt.Sprintf("divide circuit %d among its paths", c.number)}
		for _, do := range ways {
			g.Buckets = append(g.Buckets, openflow.Bucket{Weight: 1, WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: do})
		}
		b.Groups = append(b.Groups, g)
		send = openflow.Actions{openflow.Group{Group: c.choice}}
	}
	why := fmt.Sprintf("carry circuit %d", c.number)
	if c.name != "" {
		why += " (" + c.name + ")"
	}
	for n := range c.classes {
		one := &c.classes[n]
		var do openflow.Instructions
		if meter := b.meterOf(c); meter != 0 {
			do = append(do, openflow.Meter{Meter: meter})
		}
		var actions openflow.Actions
		if c.dscp != 0 && one.remarkable {
			actions = append(actions, openflow.SetField{Field: openflow.IPDSCP(c.dscp)})
		}
		switch {
		case b.form.flat && send == nil:
			actions = append(actions, output(c.out))
		case b.form.flat:
			actions = append(actions, send...)
		}
		if len(actions) > 0 {
			do = append(do, openflow.ApplyActions{Actions: actions})
		}
		if !b.form.flat {
			if send != nil {
				do = append(do, openflow.WriteMetadata{Metadata: uint64(c.number), Mask: numberMask})
			}
			do = append(do, next(TableRedirect))
		}
		b.add(TableMeter, KindCircuit, c.number, one.match(), why, do...)
		b.Flows[len(b.Flows)-1].Priority += one.specific()
	}
	if send != nil && !b.form.flat {
		b.add(TableDestination, KindPinned, c.number, openflow.Match{openflow.MetadataMasked(uint64(c.number), numberMask)}, why+" by its path", apply(send...))
	}
}

// meterOf returns the meter of a circuit at its first switch: its own, or that of what is not reserved at the port by which it leaves, the first of several.
func (b *builder) meterOf(c begin) openflow.MeterID {
	if c.rest && len(c.ways) > 0 {
		return b.leaving[c.ways[0].out]
	}
	return c.meter
}

// circuitKinds are the kinds of flows that circuits have.
var circuitKinds = []Kind{KindCircuit, KindPinned, KindCarry, KindArrive}

// Circuits returns what a switch has for circuits.
func (s State) Circuits() (of State) {
	for _, f := range s.Flows {
		if isCircuitFlow(f.Cookie) {
			of.Flows = append(of.Flows, f)
		}
	}
	for _, g := range s.Groups {
		if isCircuitGroup(g.Group) {
			of.Groups = append(of.Groups, g)
		}
	}
	for _, m := range s.Meters {
		if IsCircuitMeter(m.Meter) {
			of.Meters = append(of.Meters, m)
		}
	}
	return of
}

// WithoutCircuits returns what a switch has beside circuits.
func (s State) WithoutCircuits() State {
	return State{
		Flows:  slices.DeleteFunc(slices.Clone(s.Flows), func(f openflow.FlowStats) bool { return isCircuitFlow(f.Cookie) }),
		Groups: slices.DeleteFunc(slices.Clone(s.Groups), func(g openflow.GroupDesc) bool { return isCircuitGroup(g.Group) }),
		Meters: slices.DeleteFunc(slices.Clone(s.Meters), func(m openflow.MeterConfig) bool { return IsCircuitMeter(m.Meter) }),
	}
}

func isCircuitFlow(cookie uint64) bool {
	k, ours := KindOf(cookie)
	return ours && slices.Contains(circuitKinds, k)
}

func isCircuitGroup(id openflow.GroupID) bool { return firstRoute <= id && id <= lastGroup }

// CountedBy returns the cookie and its mask of the flows that count what circuits offer.
func CountedBy() (value, mask uint64) { return OfKind(KindCircuit) }

// CircuitOf returns the number of the circuit that a flow with a cookie counts.
func CircuitOf(cookie uint64) uint32 { return uint32(cookie) }
