package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// engine returns the engine with this name.
func (a *app) engine(name group.Engine) (shaper.Shaper, error) {
	s, ok := a.engines[name]
	if !ok {
		return nil, fmt.Errorf("engine %s is not built into this program: choose another with engine: in the configuration", name)
	}
	return s, nil
}

// engineNames returns the names of the engines in sorted order, so that messages are stable.
func (a *app) engineNames() []group.Engine { return slices.Sorted(maps.Keys(a.engines)) }

// observe reads the actual state of a device. The error is shaper.ErrNotShaped for a
// device on which Headgate has no configuration. Errors of engines name the device.
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

// clear removes Headgate's traffic control from a device, for all engines.
func (a *app) clear(dev string) error {
	var failed []error
	for _, name := range a.engineNames() {
		if err := a.engines[name].Clear(dev); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
