package program

import "headgate.dev/headgate/fabric/openflow"

// State returns what a switch has after it was brought to the program from what it had: the program, and what was not ours.
func (p Program) State(had State, ours Ours) *State {
	s := &State{
		Flows: make([]openflow.FlowStats, 0, len(p.Flows)), Groups: make([]openflow.GroupDesc, 0, len(p.Groups)), Meters: make([]openflow.MeterConfig, 0, len(p.Meters)),
	}
	foreign := map[place]bool{}
	for _, f := range had.Flows {
		if !ours.flow(f.Cookie) {
			s.Flows = append(s.Flows, f)
			foreign[placeOf(f.Table, f.Priority, f.Match)] = true
		}
	}
	for _, f := range p.Flows {
		if len(foreign) > 0 && foreign[placeOf(f.Table, f.Priority, f.Match)] {
			continue // a Collision
		}
		s.Flows = append(s.Flows, openflow.FlowStats{
			Table: f.Table, Priority: f.Priority, Match: f.Match, Cookie: f.Cookie, IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout, Flags: f.Flags, Instructions: f.Instructions,
		})
	}
	for _, g := range had.Groups {
		if !ours.group(g.Group) {
			s.Groups = append(s.Groups, g)
		}
	}
	for _, g := range p.Groups {
		s.Groups = append(s.Groups, openflow.GroupDesc{Kind: g.Kind, Group: g.ID, Buckets: g.Buckets})
	}
	for _, m := range had.Meters {
		if !ours.meter(m.Meter) {
			s.Meters = append(s.Meters, m)
		}
	}
	for _, m := range p.Meters {
		s.Meters = append(s.Meters, openflow.MeterConfig{Flags: m.Flags, Meter: m.ID, Bands: m.Bands})
	}
	return s
}
