package shaper_test

import (
	"fmt"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// plan returns the desired state of eth0, with a guarantee for web.
func plan(guarantee unit.Rate) shaper.Plan {
	eth0, problems := group.Interface{Dev: "eth0", Out: &group.Direction{Limit: 100 * unit.Mbit, Groups: []group.Group{
		{Name: "web", Guarantee: group.Amount{Rate: guarantee}, Match: []group.Selector{{Proto: []uint8{group.TCP}}}},
		{Name: "rest", Default: true},
	}}}.Resolve()
	if len(problems) > 0 {
		panic(problems[0])
	}
	return shaper.Plan{Dev: eth0.Dev, Perspective: eth0.Perspective, Out: eth0.OutTree}
}

func ExamplePlan() {
	before, after := plan(20*unit.Mbit), plan(50*unit.Mbit)
	fmt.Println("equal:", before.Equal(after))
	for _, change := range group.Diff("out", before.Out, after.Out) {
		fmt.Println(change)
	}
	// Output:
	// equal: false
	// change out group web: guarantee 20Mbit -> 50Mbit
}

// memory is an engine that enforces nothing, and only stores the plan.
type memory struct {
	shaper.Shaper // for the methods that the example does not call
	plan          shaper.Plan
}

func (m *memory) Diff(p shaper.Plan) ([]shaper.Change, error) {
	return group.Diff("out", m.plan.Out, p.Out), nil
}

func (m *memory) Apply(p shaper.Plan) ([]shaper.Change, error) {
	changes, err := m.Diff(p)
	m.plan = p
	return changes, err
}

// Apply makes the plan the actual state. When it is repeated, there is nothing to change. A program
// on a real host uses the engine of package shaper/htb, and needs root.
func ExampleShaper() {
	var engine shaper.Shaper = &memory{}
	for range 2 {
		changes, err := engine.Apply(plan(20 * unit.Mbit))
		fmt.Println(len(changes), "changes", err)
		for _, change := range changes {
			fmt.Println(change)
		}
	}
	// Output:
	// 3 changes <nil>
	// add    out limit: 100Mbit
	// add    out group web: guarantee 20Mbit, ceiling 100Mbit
	// add    out group rest: guarantee 0bit, ceiling 100Mbit
	// 0 changes <nil>
}

// Package usage computes rates from the counters of two states.
func ExampleState_Usage() {
	s := shaper.State{Dev: "eth0", Plan: plan(20 * unit.Mbit), Out: &shaper.DirectionState{Groups: []shaper.GroupState{
		{Path: "web", Guarantee: 20 * unit.Mbit, Bytes: 1500, Packets: 1},
		{Path: "rest"},
	}}}
	for _, d := range s.Usage() {
		for _, g := range d.Groups {
			fmt.Println(d.Key(g), g.Bytes, "bytes")
		}
	}
	// Output:
	// out/web 1500 bytes
	// out/rest 0 bytes
}
