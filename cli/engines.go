package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"headgate/agent"
	"headgate/group"
	"headgate/shaper"
	"headgate/shaper/htb"
	"headgate/shaper/quantum"
)

// newEngines gives every engine that is built in. This is the one place where
// they are named.
func newEngines() map[group.Engine]shaper.Shaper {
	return map[group.Engine]shaper.Shaper{
		group.HTB:     htb.New(),
		group.Quantum: quantum.New(),
	}
}

// planChecks tell why an engine could enforce a plan on no device.
var planChecks = map[group.Engine]func(shaper.Plan) error{group.Quantum: quantum.Check}

// engine is the one of that name.
func (a *app) engine(name group.Engine) (shaper.Shaper, error) {
	s, ok := a.engines[name]
	if !ok {
		return nil, fmt.Errorf("the engine %s is not built into this program: choose another with engine: in the configuration", name)
	}
	return s, nil
}

// engineNames is in a fixed order, for messages and tests.
func (a *app) engineNames() []group.Engine { return slices.Sorted(maps.Keys(a.engines)) }

// observe reads what is in force on a device. A device without anything of ours
// gives shaper.ErrNotShaped. Engines name the device in their errors.
func (a *app) observe(dev string) (shaper.State, error) {
	state, err := agent.Observe(a.engines, dev)
	switch {
	case err != nil:
		return shaper.State{}, err
	case state == nil:
		return shaper.State{}, fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	return *state, nil
}

// clear takes away what is ours on a device, whichever engine put it there.
func (a *app) clear(dev string) error {
	var failed []error
	for _, name := range a.engineNames() {
		if err := a.engines[name].Clear(dev); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
