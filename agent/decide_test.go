package agent

import (
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func TestDecide(t *testing.T) {
	plan := func(limit unit.Rate) shaper.Plan { return shaper.Plan{Dev: "eth0", Out: &group.Tree{Limit: limit}} }
	files, before, hand := plan(unit.Gbit), plan(unit.Mbit), plan(unit.Kbit)
	damaged := []shaper.Change{{Verb: "add"}}
	for _, c := range []struct {
		what    string
		named   bool // in the configuration
		force   bool
		inForce *shaper.Plan
		drift   []shaper.Change
		want    action
	}{
		{"not shaped", true, false, nil, nil, apply},
		{"the configured plan", true, false, &files, nil, apply},
		{"the previously configured plan", true, false, &before, nil, apply},
		{"applied by hand", true, false, &hand, nil, keep},
		{"applied by hand and damaged", true, false, &hand, damaged, repair},
		{"applied by hand, and the files were reloaded since", true, true, &hand, damaged, apply},
		{"no longer configured, and not shaped", false, false, nil, nil, keep},
		{"no longer configured, and applied by the agent", false, false, &before, damaged, takeAway},
		{"no longer configured, and applied by hand", false, true, &hand, nil, keep},
	} {
		m := &deviceState{force: c.force, appliedHash: planHash(before)}
		if c.named {
			m.desired = &DesiredState{plan: files}
		}
		var state *shaper.State
		if c.inForce != nil {
			state = &shaper.State{Plan: *c.inForce, Drift: c.drift}
		}
		if got := decide(m, state); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A plan read back from the kernel may have empty lists where the applied plan had nil, or the
// other way round.
func TestMark(t *testing.T) {
	with := func(rules []group.Rule) string {
		return planHash(shaper.Plan{Dev: "eth0", In: &group.Tree{Rules: rules, Nodes: []group.Node{{Path: "a"}}}})
	}
	if with(nil) != with([]group.Rule{}) {
		t.Error("nil and an empty list of rules have different marks")
	}
	if with(nil) == with([]group.Rule{{}}) {
		t.Error("no rule and a rule have the same mark")
	}
	tree := &group.Tree{Limit: 1}
	if planHash(shaper.Plan{In: tree}) == planHash(shaper.Plan{Out: tree}) {
		t.Error("the mark does not distinguish in from out")
	}
	if planHash(shaper.Plan{In: tree}) == planHash(shaper.Plan{In: tree, Quantum: group.QuantumOptions{Step: group.Step{Bytes: 1500}}}) {
		t.Error("the mark does not include the options of the engine quantum")
	}
}

func TestUntilWhole(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(ms)) }
	for _, c := range []struct {
		now   int
		every time.Duration
		want  time.Duration
	}{
		{0, time.Second, time.Second},
		{3, time.Second, 997 * time.Millisecond},
		{700, time.Second, 300 * time.Millisecond},
		{999, time.Second, 1001 * time.Millisecond}, // the timer fired early
		{999, 100 * time.Millisecond, 101 * time.Millisecond},
		{250, 100 * time.Millisecond, 50 * time.Millisecond},
		{0, 0, 0},
	} {
		if got := untilNextMultiple(at(c.now), c.every); got != c.want {
			t.Errorf("at %d ms, every %v: %v, want %v", c.now, c.every, got, c.want)
		}
	}
}
