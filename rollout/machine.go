package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// Machine is what a configuration is applied to: the devices of this network namespace, and the engines.
type Machine struct {
	Engines map[group.Engine]shaper.Shaper
	// Devices returns the names of the devices, and Foreign the programs that run before the classifier of a
	// device (attach.TCXPrograms).
	Devices func() ([]string, error)
	Foreign func(dev string) ([2][]string, error)
	// State is the directory of the pending change and of the agent's state file.
	State string
	// Note tells the user what is no result and no error.
	Note func(format string, args ...any)
	// Wait starts the process that rolls back the change with this ID unless it is confirmed in time.
	Wait func(id string) error
}

// Engine returns the engine with this name.
func (m *Machine) Engine(name group.Engine) (shaper.Shaper, error) {
	s, ok := m.Engines[name]
	if !ok {
		return nil, fmt.Errorf("engine %s is not built into this program: choose another with engine: in the configuration", name)
	}
	return s, nil
}

// EngineNames returns the names of the engines in sorted order, so that messages are stable.
func (m *Machine) EngineNames() []group.Engine { return slices.Sorted(maps.Keys(m.Engines)) }

// Observe reads the actual state of a device. The error is shaper.ErrNotShaped for a
// device on which Headgate has no configuration. Errors of engines name the device.
func (m *Machine) Observe(dev string) (shaper.State, error) {
	state, err := agent.Observe(m.Engines, dev)
	switch {
	case err != nil:
		return shaper.State{}, err
	case state == nil:
		return shaper.State{}, fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	return *state, nil
}

// ObserveWithOwner observes a device, and adds the owner and the programs that run before the classifier.
func (m *Machine) ObserveWithOwner(dev string) (shaper.State, error) {
	s, err := m.Observe(dev)
	if err != nil {
		return s, err
	}
	if _, source, ok := agent.Owner(m.State, dev); ok {
		s.Owner = source
	}
	sooner, err := m.Foreign(dev)
	for _, what := range slices.Concat(sooner[:]...) {
		s.Foreign = append(s.Foreign, what+", which runs before Headgate's classifier")
	}
	return s, err
}

// ObserveAll observes each device that Headgate shapes, with its owner.
func (m *Machine) ObserveAll() ([]shaper.State, error) {
	devices, err := m.Devices()
	if err != nil {
		return nil, err
	}
	states := []shaper.State{}
	for _, d := range devices {
		s, err := m.ObserveWithOwner(d)
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
func (m *Machine) Assignments(engine group.Engine, dev string) ([]shaper.Assignment, error) {
	lister, ok := m.Engines[engine].(interface {
		Assignments(dev string) ([]shaper.Assignment, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s: engine %s cannot list assignments: see their number in \"headgate show groups\"", dev, engine)
	}
	return lister.Assignments(dev)
}

// Clients returns the active clients of groups with each:. It returns none for an engine without such groups.
func (m *Machine) Clients(engine group.Engine, dev string) ([]shaper.Client, error) {
	lister, ok := m.Engines[engine].(interface {
		Clients(dev string) ([]shaper.Client, error)
	})
	if !ok {
		return nil, nil
	}
	return lister.Clients(dev)
}

// Clear removes Headgate's traffic control from a device, for all engines.
func (m *Machine) Clear(dev string) error {
	var failed []error
	for _, name := range m.EngineNames() {
		if err := m.Engines[name].Clear(dev); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Sweep has the engines remove the objects that removed devices left behind, and returns their names.
func (m *Machine) Sweep() (removed []string, err error) {
	for _, name := range m.EngineNames() {
		if e, ok := m.Engines[name].(interface{ Sweep() ([]string, error) }); ok {
			names, failed := e.Sweep()
			removed, err = append(removed, names...), errors.Join(err, failed)
		}
	}
	return removed, err
}

// Lock excludes other processes from changing shaping in this network namespace.
func (m *Machine) Lock() (store *pending.Store, unlock func(), err error) {
	store, err = pending.Open(m.State)
	if err != nil {
		return nil, nil, err
	}
	unlock, err = store.Lock()
	return store, unlock, shaper.WithPermission(err)
}

// What happens to a manual change of a device that the agent owns.
const (
	ClearUndoneByAgent  = "the agent applies the configuration again at once: stop the agent, or remove the device from its files and reload it"
	ApplyUndoneAtReload = "the change holds until the agent reloads its files: change them too"
)

// NoteOwner notes each device that the files of a running agent name. The argument what states what happens to a
// manual change of the device.
func (m *Machine) NoteOwner(what string, devs ...string) {
	for _, dev := range devs {
		pid, source, ok := agent.Owner(m.State, dev)
		if !ok {
			continue
		}
		m.Note("headgate: warning: the agent owns %s (process %d, config %s): %s", dev, pid, source, what)
	}
}
