package oftest

import (
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// supportedActions has bit n for ActionType n.
const supportedActions = 1<<openflow.ActionOutput | 1<<openflow.ActionPushVLAN | 1<<openflow.ActionPopVLAN | 1<<openflow.ActionSetQueue |
	1<<openflow.ActionGroup | 1<<openflow.ActionSetNwTTL | 1<<openflow.ActionDecNwTTL | 1<<openflow.ActionSetField

// checkActions reports the first action that the switch refuses. The actions must suit the packets of a match, which is
// nil if it is not known when they are executed, as in groups and action sets.
func (s *Switch) checkActions(actions openflow.Actions, match *pipeline.Matcher) *openflow.Error {
	var known *pipeline.Matcher // what is known of the packet after the actions so far
	if match != nil {
		known = &pipeline.Matcher{Mask: match.Mask, Value: match.Value}
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
func (s *Switch) checkAction(a openflow.Action, known *pipeline.Matcher) *openflow.Error {
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrBadAction, code) }
	consistent := func(needs []need) bool { return known == nil || has(known, needs) }
	switch a := a.(type) {
	case openflow.Output:
		if a.Port == openflow.PortAny || a.Port >= openflow.PortMax && a.Port < openflow.PortInPort {
			return invalid(openflow.ActionBadOutPort)
		}
	case openflow.Group:
	case openflow.PushVLAN:
		if a.EthType != pipeline.EtherVLAN && a.EthType != pipeline.EtherProviderVLAN {
			return invalid(openflow.ActionBadArgument)
		}
		if known != nil {
			known.Add(openflow.VLAN(0))
		}
	case openflow.PopVLAN:
		if !consistent([]need{{openflow.FieldVLANVID, nil}}) {
			return invalid(openflow.ActionMatchInconsistent)
		}
		if known != nil {
			known.Add(openflow.NoVLAN())
		}
	case openflow.DecNwTTL, openflow.SetNwTTL:
		if !consistent(needIP) {
			return invalid(openflow.ActionMatchInconsistent)
		}
	case openflow.SetField:
		return checkSetField(a.Field, known)
	case openflow.PushMPLS:
		if a.EthType != pipeline.EtherMPLS && a.EthType != pipeline.EtherMPLSMulticast {
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

func checkSetField(f openflow.Field, known *pipeline.Matcher) *openflow.Error {
	r, ok := rules[f.ID()]
	needs := r.needs
	switch {
	case !ok:
		return refuse(openflow.ErrBadAction, openflow.ActionBadSetType)
	case !r.settable, r.max > 0 && f.Uint() > r.max, f.ID() == openflow.FieldVLANVID && f.Uint()&pipeline.VLANPresent == 0:
		return refuse(openflow.ErrBadAction, openflow.ActionBadSetArgument)
	case f.ID() == openflow.FieldVLANVID: // of a tag that is there: a tag is pushed first (section 5.12)
		needs = []need{{openflow.FieldVLANVID, nil}}
	}
	if known == nil {
		return nil
	}
	if !has(known, needs) {
		return refuse(openflow.ErrBadAction, openflow.ActionMatchInconsistent)
	}
	known.Add(f)
	return nil
}
