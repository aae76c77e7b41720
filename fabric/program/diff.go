package program

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Change is a message to a switch, and what it is for.
type Change struct {
	Message openflow.Message
	Why     string
}

// Collision is a flow of somebody else that has the place of one of ours.
type Collision struct {
	// Ours is what the flow that was not set is for, and Theirs what the switch has there.
	Ours, Theirs string
}

func (c Collision) String() string {
	return fmt.Sprintf("the flow to %s was not set, because the switch has %s, which Headgate does not manage: remove it, or give it another priority", c.Ours, c.Theirs)
}

// Plan is how the state of a switch becomes a program.
type Plan struct {
	// Steps are sent one after the other, each after the switch has processed the one before (a barrier): what is used before
	// what uses it, and deletions after both.
	Steps [][]Change
	// Collisions are what was left out.
	Collisions []Collision
	// Foreign counts the flows, groups and meters that are not ours.
	Foreign int
	// Kept counts what was right.
	Kept int
}

// Diff returns how a switch becomes what it should be. An error means that a program contradicts itself: two flows with the
// same place, a reference to a group or meter that the program does not have, or groups that refer to each other in a circle.
func Diff(want Program, have State, ours Ours) (Plan, error) {
	places, err := want.check(ours)
	if err != nil {
		return Plan{}, err
	}
	groups, err := want.sortGroups()
	if err != nil {
		return Plan{}, err
	}
	d := differ{ours: ours}
	setMeters, dropMeters := d.meters(want.Meters, have.Meters)
	setGroups, dropGroups := d.groups(groups, have.Groups)
	setFlows, dropFlows := d.flows(want.Flows, places, have.Flows)
	for _, step := range [][]Change{setMeters, setGroups, setFlows, dropFlows, dropGroups, dropMeters} {
		if len(step) > 0 {
			d.plan.Steps = append(d.plan.Steps, step)
		}
	}
	return d.plan, nil
}

type differ struct {
	ours Ours
	plan Plan
}

func (d *differ) meters(want []Meter, have []openflow.MeterConfig) (set, drop []Change) {
	has := map[openflow.MeterID]openflow.MeterConfig{}
	for _, m := range have {
		has[m.Meter] = m
	}
	wanted := map[openflow.MeterID]bool{}
	for _, m := range want {
		wanted[m.ID] = true
		mod := &openflow.MeterMod{Command: openflow.MeterAdd, Flags: m.Flags, Meter: m.ID, Bands: m.Bands}
		if old, is := has[m.ID]; is {
			if sameMeter(m, old) {
				d.plan.Kept++
				continue
			}
			mod.Command = openflow.MeterModify
		}
		set = append(set, Change{mod, m.Why})
	}
	for _, m := range have {
		switch {
		case wanted[m.Meter]:
		case !d.ours.meter(m.Meter):
			d.plan.Foreign++
		default:
			drop = append(drop, Change{&openflow.MeterMod{Command: openflow.MeterDelete, Meter: m.Meter}, "no longer needed"})
		}
	}
	return set, drop
}

// groups takes the groups so that each comes after those that it refers to.
func (d *differ) groups(want []Group, have []openflow.GroupDesc) (set, drop []Change) {
	has := map[openflow.GroupID]openflow.GroupDesc{}
	for _, g := range have {
		has[g.Group] = g
	}
	wanted := map[openflow.GroupID]bool{}
	for _, g := range want {
		wanted[g.ID] = true
		mod := &openflow.GroupMod{Command: openflow.GroupAdd, Kind: g.Kind, Group: g.ID, Buckets: g.Buckets}
		if old, is := has[g.ID]; is {
			if sameGroup(g, old) {
				d.plan.Kept++
				continue
			}
			mod.Command = openflow.GroupModify
		}
		set = append(set, Change{mod, g.Why})
	}
	for _, g := range unreferencedFirst(have) {
		switch {
		case wanted[g.Group]:
		case !d.ours.group(g.Group):
			d.plan.Foreign++
		default:
			drop = append(drop, Change{&openflow.GroupMod{Command: openflow.GroupDelete, Kind: g.Kind, Group: g.Group}, "no longer needed"})
		}
	}
	return set, drop
}

// Mod returns the message that adds a flow.
func (f Flow) Mod() *openflow.FlowMod {
	return &openflow.FlowMod{
		Command: openflow.FlowAdd, Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout,
		Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Flags: f.Flags, Match: f.Match, Instructions: f.Instructions,
	}
}

// flows takes the flows and their places.
func (d *differ) flows(want []Flow, at []place, have []openflow.FlowStats) (set, drop []Change) {
	has, wanted := make(map[place]int, len(have)), make([]bool, len(have))
	for n, f := range have {
		has[placeOf(f.Table, f.Priority, f.Match)] = n
	}
	for i, f := range want {
		mod := f.Mod()
		if n, is := has[at[i]]; is {
			old := have[n]
			wanted[n] = true
			switch {
			case !d.ours.flow(old.Cookie):
				d.plan.Collisions = append(d.plan.Collisions, Collision{f.Why, fmt.Sprintf("a flow with cookie %#x in table %d, priority %d, match %v", old.Cookie, old.Table, old.Priority, old.Match)})
				continue
			case sameFlow(f, old):
				d.plan.Kept++
				continue
			case f.Cookie == old.Cookie && f.IdleTimeout == old.IdleTimeout && f.HardTimeout == old.HardTimeout && f.Flags == old.Flags:
				// A change of instructions alone keeps the counters; the rest of a flow cannot be changed (OpenFlow 1.3.5,
				// section 6.4).
				mod.Command = openflow.FlowModifyStrict
				mod.CookieMask = ^uint64(0)
			}
		}
		set = append(set, Change{mod, f.Why})
	}
	// Packets go to tables with higher numbers: these are filled first, and emptied last.
	slices.SortStableFunc(set, func(a, b Change) int {
		return cmp.Compare(b.Message.(*openflow.FlowMod).Table, a.Message.(*openflow.FlowMod).Table)
	})
	for n, f := range have {
		switch {
		case !d.ours.flow(f.Cookie):
			d.plan.Foreign++
		case !wanted[n]:
			drop = append(drop, Change{&openflow.FlowMod{
				Command: openflow.FlowDeleteStrict, Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, CookieMask: ^uint64(0),
				Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Match: f.Match,
			}, "no longer needed"})
		}
	}
	slices.SortStableFunc(drop, func(a, b Change) int {
		return cmp.Compare(a.Message.(*openflow.FlowMod).Table, b.Message.(*openflow.FlowMod).Table)
	})
	return set, drop
}
