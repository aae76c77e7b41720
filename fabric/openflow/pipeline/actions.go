package pipeline

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// actionSet is the actions that are executed after the last table, at most one of each type and field (section 5.10).
type actionSet struct {
	popVLAN  bool
	pushVLAN uint16
	decTTL   bool
	fields   openflow.Match
	ttl      *uint8
	group    *openflow.GroupID
	output   *openflow.Output
	unknown  openflow.Actions
}

// write adds actions. Each replaces the one of its type.
func (s *actionSet) write(actions openflow.Actions) {
	for _, a := range actions {
		switch a := a.(type) {
		case openflow.PopVLAN:
			s.popVLAN = true
		case openflow.PushVLAN:
			s.pushVLAN = a.EthType
		case openflow.DecNwTTL:
			s.decTTL = true
		case openflow.SetNwTTL:
			s.ttl = &a.TTL
		case openflow.SetField:
			s.fields = slices.DeleteFunc(slices.Clone(s.fields), func(f openflow.Field) bool { return f.ID() == a.Field.ID() })
			s.fields = append(s.fields, a.Field)
		case openflow.Group:
			s.group = &a.Group
		case openflow.Output:
			s.output = &a
		case openflow.SetQueue: // changes the rate alone
		default:
			s.unknown = append(slices.Clone(s.unknown), a)
		}
	}
}

// run executes the set in the order of section 5.10. The output is left out if there is a group.
func (x *Execution) run(s *actionSet) {
	for _, a := range s.unknown {
		x.Switch.Skip(x, a, Unknown)
	}
	if s.popVLAN {
		x.Packet.PopVLAN()
	}
	if s.pushVLAN != 0 {
		x.Packet.PushVLAN(s.pushVLAN)
	}
	if s.decTTL && !x.decTTL() {
		return
	}
	for _, f := range s.fields {
		x.setField(openflow.SetField{Field: f})
	}
	if s.ttl != nil {
		x.Packet.SetTTL(*s.ttl)
	}
	switch {
	case s.group != nil:
		x.group(openflow.Group{Group: *s.group})
	case s.output != nil:
		x.output(*s.output)
	}
}

// do executes an action of a list, and reports whether the packet is still there.
func (x *Execution) do(a openflow.Action) bool {
	switch a := a.(type) {
	case openflow.Output:
		x.output(a)
	case openflow.Group:
		x.group(a)
	case openflow.PushVLAN:
		x.Packet.PushVLAN(a.EthType)
	case openflow.PopVLAN:
		x.Packet.PopVLAN()
	case openflow.DecNwTTL:
		return x.decTTL()
	case openflow.SetNwTTL:
		x.Packet.SetTTL(a.TTL)
	case openflow.SetField:
		x.setField(a)
	case openflow.SetQueue: // changes the rate alone
	default:
		x.Switch.Skip(x, a, Unknown)
	}
	return true
}

// setField sets a field. One that OpenFlow 1.3 does not define is not known here.
func (x *Execution) setField(a openflow.SetField) {
	if !defined(a.Field.ID()) {
		x.Switch.Skip(x, a, Unknown)
		return
	}
	x.Packet.SetField(a.Field)
}

// decTTL decreases the TTL. A packet whose TTL ends goes to the controller instead (section 5.12, OFPR_INVALID_TTL).
func (x *Execution) decTTL() bool {
	ttl, ok := x.Packet.TTL()
	switch {
	case !ok:
		return true
	case ttl <= 1:
		x.Switch.PacketIn(x, openflow.ReasonInvalidTTL)
		return false
	}
	x.Packet.SetTTL(ttl - 1)
	return true
}
