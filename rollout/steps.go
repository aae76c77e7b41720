package rollout

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
)

// Step is the changes of one device, with the data to apply them and to roll them back.
type Step struct {
	diff.Entry

	plan   shaper.Plan
	before pending.Snapshot // the actual state before the change
}

// Entries returns the changes of steps.
func Entries(steps []Step) []diff.Entry {
	out := make([]diff.Entry, len(steps))
	for i, s := range steps {
		out[i] = s.Entry
	}
	return out
}

// Target is an existing device and its desired state.
type Target struct {
	source config.Interface
	plan   shaper.Plan
}

// Targets returns the devices that a configuration configures. A named device must exist,
// unless ignoreMissing is true; a pattern matches the devices that exist.
func (m *Machine) Targets(set config.Set, ignoreMissing bool) ([]Target, error) {
	devices, err := m.Devices()
	if err != nil {
		return nil, err
	}
	var out []Target
	for _, i := range set.Interfaces {
		found := false
		if i.WrittenDev() != i.Dev {
			m.Note("%s: %s is the device %s", i.Name(), i.WrittenDev(), i.Dev)
		}
		for _, dev := range devices {
			if owner, ok := set.For(dev); ok && owner.Dev == i.Dev {
				found = true
				out = append(out, Target{i, shaper.NewPlan(dev, i.Resolved)})
			}
		}
		switch {
		case found:
		case group.IsPattern(i.Dev):
			m.Note("%s: no device matches %q now", i.Name(), i.Dev)
		case ignoreMissing:
			m.Note("%s: skipping %s: %v", i.Name(), i.Dev, shaper.ErrNoDevice)
		default:
			return nil, fmt.Errorf("%s: %s: %w: create it first, or set --ignore-missing", i.Name(), i.Dev, shaper.ErrNoDevice)
		}
	}
	return out, nil
}

// Steps compares all targets with the kernel, and changes nothing. The error joins the errors of all devices.
func (m *Machine) Steps(targets []Target) ([]Step, error) {
	steps := []Step{}
	var failed []error
	for _, t := range targets {
		s, err := m.step(t)
		if err == nil {
			err = m.warnForeign(t.plan, t.source.Engine)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", t.source.Name(), err))
		}
		steps = append(steps, s)
	}
	return steps, errors.Join(failed...)
}

func (m *Machine) step(t Target) (Step, error) {
	s := Step{
		Entry: diff.Entry{Dev: t.plan.Dev, Engine: t.source.Engine, Changes: []shaper.Change{}},
		plan:  t.plan,
	}
	engine, err := m.Engine(s.Engine)
	if err != nil {
		return s, err
	}
	if s.before, err = m.state(s.Dev); err != nil {
		return s, err
	}
	if s.before.Plan != nil && s.before.Engine != s.Engine {
		s.Changes = append(s.Changes, shaper.Change{Verb: "remove", Object: "engine " + string(s.before.Engine)})
	}
	changes, err := engine.Diff(s.plan)
	s.Changes = append(s.Changes, changes...)
	return s, err
}

// warnForeign warns about foreign tcx programs that run before the classifier and can keep
// packets from it. They are no error, because most of them pass on all packets.
func (m *Machine) warnForeign(p shaper.Plan, engine group.Engine) error {
	sooner, err := m.Foreign(p.Dev)
	for side, d := range attach.Directions(p) {
		for _, what := range sooner[side] {
			if d.Tree != nil {
				m.Note("headgate: warning: %s: %s runs before Headgate's classifier: packets that it accepts, other than with TCX_NEXT, are in no group of %q, and %s", p.Dev, what, d, bypassEffect(engine, side))
			}
		}
	}
	return err
}

// bypassEffect describes the effect on packets that bypass the classifier. HTB puts them in the
// class of control traffic, whose ceiling is shaper/htb's controlCeiling.
func bypassEffect(engine group.Engine, side int) string {
	if engine == group.HTB && side == attach.Egress {
		return "share at most a quarter of its limit with control traffic"
	}
	return "are not limited"
}
