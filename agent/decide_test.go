package agent

import (
	"testing"
	"time"

	"headgate/group"
	"headgate/shaper"
	"headgate/unit"
)

func TestDecide(t *testing.T) {
	plan := func(limit unit.Rate) shaper.Plan { return shaper.Plan{Dev: "eth0", Out: &group.Tree{Limit: limit}} }
	files, before, hand := plan(unit.Gbit), plan(unit.Mbit), plan(unit.Kbit)
	damaged := []shaper.Change{{Verb: "add"}}
	for _, c := range []struct {
		what    string
		named   bool // in the files
		force   bool
		inForce *shaper.Plan
		drift   []shaper.Change
		want    action
	}{
		{"nothing is in force", true, false, nil, nil, give},
		{"what the files say", true, false, &files, nil, give},
		{"what they said before", true, false, &before, nil, give},
		{"applied by hand", true, false, &hand, nil, leave},
		{"applied by hand and damaged", true, false, &hand, damaged, mend},
		{"applied by hand, and the files were read since", true, true, &hand, damaged, give},
		{"no longer named, and nothing is in force", false, false, nil, nil, leave},
		{"no longer named, and ours", false, false, &before, damaged, takeAway},
		{"no longer named, and applied by hand", false, true, &hand, nil, leave},
	} {
		m := &memory{force: c.force, mine: mark(before)}
		if c.named {
			m.want = &want{plan: files}
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

// A plan comes back from the kernel with lists that are empty where they were
// absent, or the other way round.
func TestMark(t *testing.T) {
	with := func(rules []group.Rule) string {
		return mark(shaper.Plan{Dev: "eth0", In: &group.Tree{Rules: rules, Nodes: []group.Node{{Path: "a"}}}})
	}
	if with(nil) != with([]group.Rule{}) {
		t.Error("no rules and an empty list of rules have different marks")
	}
	if with(nil) == with([]group.Rule{{}}) {
		t.Error("no rule and a rule have the same mark")
	}
	tree := &group.Tree{Limit: 1}
	if mark(shaper.Plan{In: tree}) == mark(shaper.Plan{Out: tree}) {
		t.Error("the mark does not tell in from out")
	}
	if mark(shaper.Plan{In: tree}) == mark(shaper.Plan{In: tree, Quantum: group.QuantumOptions{Step: group.Step{Bytes: 1500}}}) {
		t.Error("the mark does not tell options of the engine quantum apart")
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
		{999, time.Second, 1001 * time.Millisecond}, // it fired early
		{999, 100 * time.Millisecond, 101 * time.Millisecond},
		{250, 100 * time.Millisecond, 50 * time.Millisecond},
		{0, 0, 0},
	} {
		if got := untilWhole(at(c.now), c.every); got != c.want {
			t.Errorf("at %d ms, every %v: %v, want %v", c.now, c.every, got, c.want)
		}
	}
}
