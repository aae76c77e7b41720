package pipeline

import (
	"fmt"

	"headgate.dev/headgate/fabric/openflow"
)

// Switch is the switch of an Execution, which calls it in the order in which things happen to a packet.
type Switch interface {
	// Lookup returns the flow of a table that the packet matches, nil if there is none.
	Lookup(x *Execution, table int) *Flow
	// Meter reports whether the packet passes a meter.
	Meter(x *Execution, id openflow.MeterID) bool
	// Group returns a group, nil if there is none with the number.
	Group(id openflow.GroupID) *Group
	// Bucket is called before a bucket processes the packet, and first is set before the first bucket of a group.
	Bucket(x *Execution, g *Group, bucket int, first bool)
	// Live reports whether a bucket may use a port (OFPPS_LIVE).
	Live(port openflow.PortNo) bool
	// Ports returns all ports, in order.
	Ports() []openflow.PortNo
	// Send sends the packet out of a port, if that exists and forwards.
	Send(x *Execution, port openflow.PortNo)
	// PacketIn sends the packet to the controllers.
	PacketIn(x *Execution, reason openflow.PacketInReason)
	// Skip is called for an action or an instruction without effect.
	Skip(x *Execution, what fmt.Stringer, why Reason)
}

// Execution is the way of one packet through a switch.
type Execution struct {
	Switch Switch
	Packet *Packet
	In     openflow.PortNo
	// PacketOut is set for a packet that a controller sends.
	PacketOut bool
	// EveryBucket makes each live bucket of a select group process the packet: how a switch chooses is its own affair.
	EveryBucket bool
	// Flow is the one whose cookie and table packet-ins have; nil for a packet-out.
	Flow *Flow
	// Depth is how many groups are in each other here.
	Depth int
	// Left is how many tables, actions, buckets and ports are still looked at, and 0 ends the execution. nil is any number: OpenFlow
	// bounds each of them, but not all together.
	Left *int

	set    actionSet
	hasSet bool
	miss   bool // the actions of the table-miss flow are executed
	groups *int // that have processed the packet and its copies
}

// Tables passes the packet through the tables (section 5.3). A packet that no flow matches in a later table still has its
// action set executed, as in Open vSwitch.
func (x *Execution) Tables() {
	var first *Flow
	for n := 0; ; {
		if !x.goesOn() {
			return
		}
		f := x.Switch.Lookup(x, n)
		if f == nil {
			break
		}
		p := f.Program
		for _, i := range p.Unknown {
			x.Switch.Skip(x, i, Unknown)
		}
		if p.Meter != 0 && !x.Switch.Meter(x, p.Meter) {
			return
		}
		if first == nil {
			first = f
		}
		x.Flow, x.miss = f, f.tableMiss()
		if !x.Actions(p.Apply) {
			return
		}
		if p.Clear {
			x.set, x.hasSet = actionSet{}, false
		}
		if len(p.Write) > 0 {
			x.set.write(p.Write)
			x.hasSet = true
		}
		if p.Mask != 0 {
			old := x.Packet.Key.Uint(openflow.FieldMetadata)
			x.Packet.Key.setUint(openflow.FieldMetadata, old&^p.Mask|p.Metadata&p.Mask)
		}
		if p.Next <= n { // none, or one to which the specification has no way
			break
		}
		n = p.Next
	}
	if x.hasSet {
		x.Flow, x.miss = first, false // Open vSwitch has the cookie of the first flow in packet-ins of the set
		if x.PacketOut {
			x.Flow = nil
		}
		set := x.set
		x.run(&set)
	}
}

// Actions executes a list of actions, and reports whether the packet is still there.
func (x *Execution) Actions(list openflow.Actions) bool {
	for _, a := range list {
		if !x.goesOn() || !x.do(a) {
			return false
		}
	}
	return true
}

// goesOn reports whether something further may be looked at.
func (x *Execution) goesOn() bool {
	if x.Left == nil {
		return true
	}
	*x.Left--
	return *x.Left >= 0
}

// output sends the packet to a port (section 5.6, "Ports" of section 4). A packet goes back to where it arrived only by
// IN_PORT.
func (x *Execution) output(a openflow.Output) {
	switch a.Port {
	case openflow.PortController:
		reason := openflow.ReasonAction
		if x.miss && !x.PacketOut {
			reason = openflow.ReasonNoMatch
		}
		x.Switch.PacketIn(x, reason)
	case openflow.PortInPort:
		x.Switch.Send(x, x.In)
	case openflow.PortAll, openflow.PortFlood:
		for _, p := range x.Switch.Ports() {
			if p != x.In && x.goesOn() {
				x.Switch.Send(x, p)
			}
		}
	case openflow.PortTable:
		if x.PacketOut && x.Flow == nil && x.Depth == 0 {
			inner := *x
			inner.Packet, inner.Depth = x.Packet.Clone(), x.Depth+1
			inner.Tables()
		}
	case openflow.PortNormal:
		x.Switch.Skip(x, a, Unknown)
	case x.In:
		x.Switch.Skip(x, a, ToInPort)
	default:
		x.Switch.Send(x, a.Port)
	}
}
