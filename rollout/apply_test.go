package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/observe"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// broken is an engine whose assignments cannot be read.
type broken struct {
	shaper.Shaper
	applied *int
}

func (broken) Assignments(string) ([]shaper.Assignment, error) { return nil, errors.New("a bad map") }
func (b broken) Apply(shaper.Plan) ([]shaper.Change, error)    { *b.applied++; return nil, nil }

// Apply repairs a device whose assignments cannot be read, and says that undo cannot restore it. It does not, if the change must be
// confirmed: then it could not be rolled back.
func TestApplyWithoutAssignments(t *testing.T) {
	applied, notes := 0, ""
	m := &Machine{
		Observer: observe.Observer{Engines: map[group.Engine]shaper.Shaper{group.HTB: broken{applied: &applied}}, State: t.TempDir()},
		Note:     func(format string, _ ...any) { notes += format + "\n" },
	}
	steps := func() ([]Step, error) {
		return []Step{{
			Entry:  diff.Entry{Dev: "eth0", Engine: group.HTB, Changes: []shaper.Change{{Verb: "change", Object: "out limit"}}},
			before: pending.Snapshot{Dev: "eth0", Engine: group.HTB, Plan: &shaper.Plan{Dev: "eth0"}},
		}}, nil
	}
	if _, err := m.Apply(steps, time.Minute, func(Step) {}); err == nil || applied > 0 || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("with a confirmation: %v, applied %d times", err, applied)
	}
	if _, err := m.Apply(steps, 0, func(Step) {}); err != nil || applied != 1 || !strings.Contains(notes, "cannot undo it") {
		t.Errorf("%v, applied %d times\n%s", err, applied, notes)
	}
}
