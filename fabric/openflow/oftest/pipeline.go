package oftest

import (
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// program is the instructions of a flow in the order of their execution (section 5.9).
type program struct {
	meter          openflow.MeterID // 0 if there is none
	apply          openflow.Actions
	clear          bool
	write          openflow.Actions
	metadata, mask uint64
	next           int // table, or -1
}

// The error of the ONF extension for two instructions of one type (EXT-260), which Open vSwitch sends for OpenFlow 1.3.
const duplicateInstruction = 2600

// compile checks instructions for a flow of a table and a match.
func (s *Switch) compile(all openflow.Instructions, t openflow.TableID, m *matcher) (p program, err *openflow.Error) {
	p.next = -1
	seen := map[openflow.InstructionType]bool{}
	invalid := func(code uint16) (program, *openflow.Error) {
		return program{}, refuse(openflow.ErrBadInstruction, code)
	}
	for _, i := range all {
		if seen[i.Type()] {
			return program{}, &openflow.Error{Kind: openflow.ErrExperimenter, Experimenter: openflow.ONF, Code: duplicateInstruction}
		}
		seen[i.Type()] = true
		switch i := i.(type) {
		case openflow.Meter:
			p.meter = i.Meter
		case openflow.ApplyActions:
			p.apply = i.Actions
		case openflow.ClearActions:
			p.clear = true
		case openflow.WriteActions:
			p.write = i.Actions
		case openflow.WriteMetadata:
			p.metadata, p.mask = i.Metadata, i.Mask
		case openflow.GotoTable:
			if i.Table <= t || int(i.Table) >= len(s.tables) {
				return invalid(openflow.InstructionBadTableID)
			}
			p.next = int(i.Table)
		case openflow.ExperimenterInstruction:
			return invalid(openflow.InstructionBadExperimenter)
		default:
			return invalid(openflow.InstructionUnknownInst)
		}
	}
	if p.meter != 0 && s.meters[p.meter] == nil {
		return program{}, refuse(openflow.ErrMeterModFailed, openflow.MeterModInvalidMeter)
	}
	if err := s.checkActions(p.apply, m); err != nil {
		return program{}, err
	}
	if err := s.checkActions(p.write, nil); err != nil {
		return program{}, err
	}
	if err := s.checkGroups(slices.Concat(p.apply, p.write)); err != nil {
		return program{}, err
	}
	return p, nil
}

// ordered returns instructions in the order of their execution, as a switch returns them.
func ordered(all openflow.Instructions) (o openflow.Instructions) {
	for _, t := range []openflow.InstructionType{
		openflow.InstructionMeter, openflow.InstructionApplyActions, openflow.InstructionClearActions,
		openflow.InstructionWriteActions, openflow.InstructionWriteMetadata, openflow.InstructionGotoTable,
	} {
		for _, i := range all {
			if a, ok := i.(openflow.ApplyActions); ok && len(a.Actions) == 0 {
				continue // Open vSwitch keeps none
			}
			if i.Type() == t {
				o = append(o, i)
			}
		}
	}
	return o
}

// execution is the way of one packet through a switch.
type execution struct {
	s         *Switch
	p         *packet
	in        openflow.PortNo
	bytes     int // of the packet when it arrived, which count for flows and groups whatever is changed in it
	now       time.Time
	way       way
	set       actionSet
	hasSet    bool
	flow      *flow // of the cookie and table in packet-ins; nil for a packet-out
	miss      bool  // the actions of the table-miss flow are executed
	packetOut bool
	depth     int    // of groups
	groups    *int   // that have processed the packet and its copies
	trace     *trace // what would be done is recorded, not done
}

// tables passes the packet through the tables (section 5.3). A packet that no flow matches in a later table still has its
// action set executed, as in Open vSwitch.
func (x *execution) tables() {
	var first *flow
	for n := 0; n >= 0; {
		t := &x.s.tables[n]
		f := t.lookup(&x.p.key)
		x.count(t, f)
		if f == nil {
			break
		}
		p := &f.program
		if p.meter != 0 && !x.meter(p.meter) {
			return
		}
		if first == nil {
			first = f
		}
		x.flow, x.miss = f, f.tableMiss()
		for _, a := range p.apply {
			if !x.do(a) {
				return
			}
		}
		if p.clear {
			x.set, x.hasSet = actionSet{}, false
		}
		if len(p.write) > 0 {
			x.set.write(p.write)
			x.hasSet = true
		}
		if p.mask != 0 {
			old := x.p.key.uint(openflow.FieldMetadata)
			x.p.key.setUint(openflow.FieldMetadata, old&^p.mask|p.metadata&p.mask)
		}
		n = p.next
	}
	if x.hasSet {
		x.flow, x.miss = first, false // Open vSwitch has the cookie of the first flow in packet-ins of the set
		if x.packetOut {
			x.flow = nil
		}
		set := x.set
		x.run(&set)
	}
}

// count counts a packet in a table, and in the flow that it matches.
func (x *execution) count(t *table, f *flow) {
	if x.trace != nil {
		x.record(traceStep{table: t, flow: f})
		return
	}
	t.lookups++
	if f != nil {
		t.matched++
		f.packets++
		f.bytes += uint64(x.bytes)
		f.used = x.now
	}
}

// meter reports whether a packet passes a meter. A meter that was deleted passes all.
func (x *execution) meter(id openflow.MeterID) bool {
	m := x.s.meters[id]
	if m == nil {
		return true
	}
	if x.trace != nil {
		x.record(traceStep{meter: m})
		return true
	}
	return m.pass(len(x.p.data))
}

// Limits of groups. Loops are refused, but groups that use others several times can make any number of copies: Open
// vSwitch ends them as well (MAX_RESUBMITS of ofproto/ofproto-dpif-xlate.c).
const (
	maxChain  = 64
	maxGroups = 4096
)

// group processes the packet by a group. What a bucket changes in it no other bucket sees, nor what follows the group.
func (x *execution) group(id openflow.GroupID) {
	g := x.s.groups[id]
	if x.groups == nil {
		x.groups = new(int)
	}
	if g == nil || x.depth >= maxChain || *x.groups >= maxGroups {
		return
	}
	*x.groups++
	buckets := x.s.choose(g, x.p)
	if len(buckets) > 0 {
		x.countIn(&g.counter)
	}
	for _, b := range buckets {
		x.countIn(&b.counter)
		part := *x
		part.p, part.miss, part.depth = x.p.clone(), false, x.depth+1
		part.run(&b.set)
	}
}

// countIn counts the packet in a group or a bucket.
func (x *execution) countIn(c *counter) {
	if x.trace != nil {
		x.record(traceStep{counter: c})
		return
	}
	c.packets++
	c.bytes += uint64(x.bytes)
}

// output sends the packet to a port (section 5.6, "Ports" of section 4). A packet goes back to where it arrived only by
// IN_PORT.
func (x *execution) output(to openflow.PortNo) {
	switch to {
	case openflow.PortController:
		reason := openflow.ReasonAction
		if x.miss && !x.packetOut {
			reason = openflow.ReasonNoMatch
		}
		x.packetIn(reason)
	case openflow.PortInPort:
		x.send(x.s.ports[x.in])
	case openflow.PortAll, openflow.PortFlood:
		for _, p := range x.s.sortedPorts() {
			if p.no != x.in {
				x.send(p)
			}
		}
	case openflow.PortTable:
		if x.packetOut && x.flow == nil && x.depth == 0 {
			inner := *x
			inner.p, inner.depth = x.p.clone(), x.depth+1
			inner.tables()
		}
	case x.in:
	default:
		x.send(x.s.ports[to])
	}
}

// send sends the packet as it is out of a port that exists and is up.
func (x *execution) send(p *port) {
	if p == nil || !p.forwards() {
		return
	}
	if x.trace != nil {
		x.record(traceStep{out: p, packet: x.p.clone()})
		return
	}
	p.tx.count(1, float64(len(x.p.data)))
	if p.peer != nil {
		p.peer.frame(append([]byte(nil), x.p.data...), way{x.way.id, x.way.hops + 1})
	}
}

// packetIn sends the packet to the controllers.
func (x *execution) packetIn(reason openflow.PacketInReason) {
	if x.trace != nil {
		x.record(traceStep{controller: true})
		return
	}
	m := &openflow.PacketIn{
		Buffer: openflow.NoBuffer, TotalLen: uint16(len(x.p.data)), Reason: reason, Cookie: ^uint64(0),
		Match: openflow.Match{openflow.InPort(x.in)}, Data: append([]byte(nil), x.p.data...),
	}
	if x.flow != nil {
		m.Cookie, m.Table = x.flow.cookie, x.flow.table
	}
	if v := x.p.key.uint(openflow.FieldMetadata); v != 0 {
		m.Match = append(m.Match, openflow.Metadata(v))
	}
	if v := x.p.key.uint(openflow.FieldTunnelID); v != 0 {
		m.Match = append(m.Match, openflow.TunnelID(v))
	}
	x.s.notify(m)
}
