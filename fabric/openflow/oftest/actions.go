package oftest

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// supportedActions has bit n for ActionType n.
const supportedActions = 1<<openflow.ActionOutput | 1<<openflow.ActionPushVLAN | 1<<openflow.ActionPopVLAN | 1<<openflow.ActionSetQueue |
	1<<openflow.ActionGroup | 1<<openflow.ActionSetNwTTL | 1<<openflow.ActionDecNwTTL | 1<<openflow.ActionSetField

// checkActions reports the first action that the switch refuses. The actions must suit the packets of a match, which is
// nil if it is not known when they are executed, as in groups and action sets.
func (s *Switch) checkActions(actions openflow.Actions, match *matcher) *openflow.Error {
	var known *matcher // what is known of the packet after the actions so far
	if match != nil {
		known = &matcher{match.mask, match.value}
	}
	for _, a := range actions {
		if err := s.checkAction(a, known); err != nil {
			return err
		}
	}
	return nil
}

// checkGroups reports a group that does not exist. The groups that groups use may come later.
func (s *Switch) checkGroups(actions openflow.Actions) *openflow.Error {
	for _, a := range actions {
		if g, ok := a.(openflow.Group); ok && s.groups[g.Group] == nil {
			return refuse(openflow.ErrBadAction, openflow.ActionBadOutGroup)
		}
	}
	return nil
}

// checkAction checks an action, and adds what it sets to what is known.
func (s *Switch) checkAction(a openflow.Action, known *matcher) *openflow.Error {
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrBadAction, code) }
	consistent := func(needs []need) bool { return known == nil || known.has(needs) }
	switch a := a.(type) {
	case openflow.Output:
		if a.Port == openflow.PortAny || a.Port >= openflow.PortMax && a.Port < openflow.PortInPort {
			return invalid(openflow.ActionBadOutPort)
		}
	case openflow.Group:
	case openflow.PushVLAN:
		if a.EthType != typeVLAN && a.EthType != typeProviderVLAN {
			return invalid(openflow.ActionBadArgument)
		}
		if known != nil {
			known.add(openflow.VLAN(0))
		}
	case openflow.PopVLAN:
		if !consistent([]need{{openflow.FieldVLANVID, nil}}) {
			return invalid(openflow.ActionMatchInconsistent)
		}
		if known != nil {
			known.add(openflow.NoVLAN())
		}
	case openflow.DecNwTTL, openflow.SetNwTTL:
		if !consistent(needIP) {
			return invalid(openflow.ActionMatchInconsistent)
		}
	case openflow.SetField:
		return checkSetField(a.Field, known)
	case openflow.PushMPLS:
		if a.EthType != typeMPLS && a.EthType != typeMPLSM {
			return invalid(openflow.ActionBadArgument)
		}
		return invalid(openflow.ActionBadType)
	case openflow.SetQueue:
	case openflow.ExperimenterAction:
		return invalid(openflow.ActionBadExperimenter)
	default:
		return invalid(openflow.ActionBadType)
	}
	return nil
}

func checkSetField(f openflow.Field, known *matcher) *openflow.Error {
	r, ok := rules[f.ID()]
	needs := r.needs
	switch {
	case !ok:
		return refuse(openflow.ErrBadAction, openflow.ActionBadSetType)
	case !r.settable, r.max > 0 && f.Uint() > r.max, f.ID() == openflow.FieldVLANVID && f.Uint()&vlanPresent == 0:
		return refuse(openflow.ErrBadAction, openflow.ActionBadSetArgument)
	case f.ID() == openflow.FieldVLANVID: // of a tag that is there: a tag is pushed first (section 5.12)
		needs = []need{{openflow.FieldVLANVID, nil}}
	}
	if known == nil {
		return nil
	}
	if !known.has(needs) {
		return refuse(openflow.ErrBadAction, openflow.ActionMatchInconsistent)
	}
	known.add(f)
	return nil
}

// actionSet is the actions that are executed after the last table, at most one of each type and field (section 5.10).
type actionSet struct {
	popVLAN  bool
	pushVLAN uint16
	decTTL   bool
	fields   openflow.Match
	ttl      *uint8
	group    *openflow.GroupID
	output   *openflow.Output
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
		}
	}
}

// run executes the set in the order of section 5.10. The output is left out if there is a group.
func (x *execution) run(s *actionSet) {
	if s.popVLAN {
		x.p.popVLAN()
	}
	if s.pushVLAN != 0 {
		x.p.pushVLAN(s.pushVLAN)
	}
	if s.decTTL && !x.decTTL() {
		return
	}
	for _, f := range s.fields {
		x.p.setField(f)
	}
	if s.ttl != nil {
		x.p.setTTL(*s.ttl)
	}
	switch {
	case s.group != nil:
		x.group(*s.group)
	case s.output != nil:
		x.output(s.output.Port)
	}
}

// do executes an action of a list, and reports whether the packet is still there.
func (x *execution) do(a openflow.Action) bool {
	switch a := a.(type) {
	case openflow.Output:
		x.output(a.Port)
	case openflow.Group:
		x.group(a.Group)
	case openflow.PushVLAN:
		x.p.pushVLAN(a.EthType)
	case openflow.PopVLAN:
		x.p.popVLAN()
	case openflow.DecNwTTL:
		return x.decTTL()
	case openflow.SetNwTTL:
		x.p.setTTL(a.TTL)
	case openflow.SetField:
		x.p.setField(a.Field)
	}
	return true
}

// decTTL decreases the TTL. A packet whose TTL ends goes to the controller instead (section 5.12, OFPR_INVALID_TTL).
func (x *execution) decTTL() bool {
	ttl, ok := x.p.ttl()
	switch {
	case !ok:
		return true
	case ttl <= 1:
		x.packetIn(openflow.ReasonInvalidTTL)
		return false
	}
	x.p.setTTL(ttl - 1)
	return true
}
