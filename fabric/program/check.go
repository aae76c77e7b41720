package program

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// check finds contradictions, and returns the places of the flows.
func (p Program) check(ours Ours) (at []place, err error) {
	meters := map[openflow.MeterID]bool{}
	for _, m := range p.Meters {
		if meters[m.ID] {
			return nil, fmt.Errorf("two meters have the number %d: one is to %s", m.ID, m.Why)
		}
		if !ours.meter(m.ID) {
			return nil, fmt.Errorf("meter %d to %s is not between %d and %d", m.ID, m.Why, ours.Meters[0], ours.Meters[1])
		}
		meters[m.ID] = true
	}
	groups := map[openflow.GroupID]int{}
	for n, g := range p.Groups {
		if _, is := groups[g.ID]; is {
			return nil, fmt.Errorf("two groups have the number %d: one is to %s", g.ID, g.Why)
		}
		if !ours.group(g.ID) {
			return nil, fmt.Errorf("group %d to %s is not between %d and %d", g.ID, g.Why, ours.Groups[0], ours.Groups[1])
		}
		groups[g.ID] = n
	}
	at = make([]place, len(p.Flows))
	places := make(map[place]string, len(p.Flows))
	for n, f := range p.Flows {
		at[n] = placeOf(f.Table, f.Priority, f.Match)
		if other, is := places[at[n]]; is {
			return nil, fmt.Errorf("two flows have table %d, priority %d and match %v: one is to %s, the other to %s", f.Table, f.Priority, f.Match, other, f.Why)
		}
		places[at[n]] = f.Why
		if !ours.flow(f.Cookie) {
			return nil, fmt.Errorf("the cookie %#x of the flow to %s is not %#x under the mask %#x", f.Cookie, f.Why, ours.Cookie, ours.CookieMask)
		}
		for _, i := range f.Instructions {
			if m, is := i.(openflow.Meter); is && !meters[m.Meter] {
				return nil, fmt.Errorf("the flow to %s has meter %d, which the program does not have", f.Why, m.Meter)
			}
			for _, g := range groupsIn(actionsIn(i)) {
				if _, is := groups[g]; !is {
					return nil, fmt.Errorf("the flow to %s has group %d, which the program does not have", f.Why, g)
				}
			}
		}
	}
	return at, nil
}

// sortGroups returns the groups so that each comes after those that it refers to.
func (p Program) sortGroups() (order []Group, err error) {
	index := map[openflow.GroupID]int{}
	for n, g := range p.Groups {
		index[g.ID] = n
	}
	const visiting, done = 1, 2
	state := make([]int, len(p.Groups))
	var visit func(n int) error
	visit = func(n int) error {
		g := p.Groups[n]
		switch state[n] {
		case done:
			return nil
		case visiting:
			return fmt.Errorf("group %d to %s refers to itself, over other groups or at once", g.ID, g.Why)
		}
		state[n] = visiting
		for _, b := range g.Buckets {
			refers := groupsIn(b.Actions)
			if g.Kind == openflow.GroupTypeFF && b.WatchGroup != openflow.GroupAny {
				refers = append(refers, b.WatchGroup)
			}
			for _, id := range refers {
				to, is := index[id]
				if !is {
					return fmt.Errorf("group %d to %s refers to group %d, which the program does not have", g.ID, g.Why, id)
				}
				if err := visit(to); err != nil {
					return err
				}
			}
		}
		state[n] = done
		order = append(order, g)
		return nil
	}
	for n := range p.Groups {
		if err := visit(n); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// unreferencedFirst returns the groups of a switch so that each comes before those that it refers to.
func unreferencedFirst(have []openflow.GroupDesc) (out []openflow.GroupDesc) {
	index := map[openflow.GroupID]int{}
	for n, g := range have {
		index[g.Group] = n
	}
	seen := make([]bool, len(have))
	var visit func(n int)
	visit = func(n int) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, b := range have[n].Buckets {
			for _, id := range groupsIn(b.Actions) {
				if to, is := index[id]; is {
					visit(to)
				}
			}
		}
		out = append(out, have[n])
	}
	for n := range have {
		visit(n)
	}
	slices.Reverse(out)
	return out
}

func actionsIn(i openflow.Instruction) openflow.Actions {
	switch i := i.(type) {
	case openflow.ApplyActions:
		return i.Actions
	case openflow.WriteActions:
		return i.Actions
	}
	return nil
}

func groupsIn(all openflow.Actions) (out []openflow.GroupID) {
	for _, a := range all {
		if g, is := a.(openflow.Group); is {
			out = append(out, g.Group)
		}
	}
	return out
}
