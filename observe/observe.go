package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// Observer reads the devices of this network namespace.
type Observer struct {
	Engines map[group.Engine]shaper.Shaper
	// Devices returns the names of the devices, and Foreign the programs that run before the classifier of a
	// device (attach.TCXPrograms).
	Devices func() ([]string, error)
	Foreign func(dev string) ([2][]string, error)
	// State is the directory of the agent's state file and of the pending change.
	State string
}

// Engine returns the engine with this name.
func (o *Observer) Engine(name group.Engine) (shaper.Shaper, error) {
	s, ok := o.Engines[name]
	if !ok {
		return nil, fmt.Errorf("engine %s is not built into this program: choose another with engine: in the configuration", name)
	}
	return s, nil
}

// EngineNames returns the names of the engines in sorted order, so that messages are stable.
func (o *Observer) EngineNames() []group.Engine { return slices.Sorted(maps.Keys(o.Engines)) }

// Observe reads the actual state of a device. The error is shaper.ErrNotShaped for a
// device on which Headgate has no configuration. Errors of engines name the device.
func (o *Observer) Observe(dev string) (shaper.State, error) {
	state, err := agent.Observe(o.Engines, dev)
	switch {
	case err != nil:
		return shaper.State{}, err
	case state == nil:
		return shaper.State{}, fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	return *state, nil
}

// ObserveWithOwner observes a device, and adds the owner, the origins of the groups and the programs that run
// before the classifier.
func (o *Observer) ObserveWithOwner(dev string) (shaper.State, error) {
	s, err := o.Observe(dev)
	if err != nil {
		return s, err
	}
	if _, source, ok := agent.Owner(o.State, dev); ok {
		s.Owner = source
	}
	addOrigins(&s, agent.Origins(o.State, dev))
	sooner, err := o.Foreign(dev)
	for _, what := range slices.Concat(sooner[:]...) {
		s.Foreign = append(s.Foreign, what+", which runs before Headgate's classifier")
	}
	return s, err
}

// addOrigins sets the origins of the state's groups, by direction and path ("out/web"). Groups without an
// entry are those of a file.
func addOrigins(s *shaper.State, of map[string]group.Origin) {
	for name, d := range map[string]*shaper.DirectionState{"out": s.Out, "in": s.In} {
		if d == nil {
			continue
		}
		for n := range d.Groups {
			d.Groups[n].Origin = of[name+"/"+d.Groups[n].Path].String()
		}
	}
}

// ObserveAll observes each device that Headgate shapes, with its owner.
func (o *Observer) ObserveAll() ([]shaper.State, error) {
	devices, err := o.Devices()
	if err != nil {
		return nil, err
	}
	states := []shaper.State{}
	for _, d := range devices {
		s, err := o.ObserveWithOwner(d)
		switch {
		case errors.Is(err, shaper.ErrNotShaped) || errors.Is(err, shaper.ErrNoDevice): // not shaped, or removed since it was listed
		case err != nil:
			return nil, err
		default:
			states = append(states, s)
		}
	}
	return states, nil
}

// Assignments returns the connections that are assigned at run time.
func (o *Observer) Assignments(engine group.Engine, dev string) ([]shaper.Assignment, error) {
	lister, ok := o.Engines[engine].(interface {
		Assignments(dev string) ([]shaper.Assignment, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s: engine %s cannot list assignments: see their number in \"headgate show groups\"", dev, engine)
	}
	return lister.Assignments(dev)
}

// Clients returns the active clients of groups with each:. It returns none for an engine without such groups.
func (o *Observer) Clients(engine group.Engine, dev string) ([]shaper.Client, error) {
	lister, ok := o.Engines[engine].(interface {
		Clients(dev string) ([]shaper.Client, error)
	})
	if !ok {
		return nil, nil
	}
	return lister.Clients(dev)
}
