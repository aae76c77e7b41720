package program

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// State returns what a switch has after it was brought to the program: the program, and what was not ours (Foreign).
func (p Program) State(foreign State) *State {
	s := &State{
		Flows:  append(make([]openflow.FlowStats, 0, len(foreign.Flows)+len(p.Flows)), foreign.Flows...),
		Groups: append(make([]openflow.GroupDesc, 0, len(foreign.Groups)+len(p.Groups)), foreign.Groups...),
		Meters: append(make([]openflow.MeterConfig, 0, len(foreign.Meters)+len(p.Meters)), foreign.Meters...),
	}
	places := map[place]bool{}
	for _, f := range foreign.Flows {
		places[placeOf(f.Table, f.Priority, f.Match)] = true
	}
	for _, f := range p.Flows {
		if len(places) > 0 && places[placeOf(f.Table, f.Priority, f.Match)] {
			continue // a Collision
		}
		s.Flows = append(s.Flows, openflow.FlowStats{
			Table: f.Table, Priority: f.Priority, Match: f.Match, Cookie: f.Cookie, IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout, Flags: f.Flags, Instructions: f.Instructions,
		})
	}
	for _, g := range p.Groups {
		s.Groups = append(s.Groups, openflow.GroupDesc{Kind: g.Kind, Group: g.ID, Buckets: g.Buckets})
	}
	for _, m := range p.Meters {
		s.Meters = append(s.Meters, openflow.MeterConfig{Flags: m.Flags, Meter: m.ID, Bands: m.Bands})
	}
	return s
}

// With returns what is in either of two states.
func (s State) With(more State) State {
	return State{slices.Concat(s.Flows, more.Flows), slices.Concat(s.Groups, more.Groups), slices.Concat(s.Meters, more.Meters)}
}

// Foreign returns what is not ours of a state.
func (s State) Foreign(ours Ours) (f State) {
	for _, one := range s.Flows {
		if !ours.flow(one.Cookie) {
			f.Flows = append(f.Flows, one)
		}
	}
	for _, one := range s.Groups {
		if !ours.group(one.Group) {
			f.Groups = append(f.Groups, one)
		}
	}
	for _, one := range s.Meters {
		if !ours.meter(one.Meter) {
			f.Meters = append(f.Meters, one)
		}
	}
	return f
}
