package rollout

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/observe"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// Machine is what a configuration is applied to: the devices of this network namespace, and the engines.
type Machine struct {
	observe.Observer
	// Note tells the user what is no result and no error.
	Note func(format string, args ...any)
	// User is who changes it, for the history.
	User string
	// Wait starts the process that rolls back the change with this ID unless it is confirmed in time.
	Wait func(id string) error
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

// record adds a change to the history, before it is made; err is why the state before is not known. The change is made also if that fails.
func (m *Machine) record(store *pending.Store, command string, before []pending.Snapshot, err error) {
	if err == nil && len(before) > 0 {
		err = store.Record(command, m.User, before)
	}
	if err != nil {
		m.Note("headgate: warning: the history will not have this change, and \"headgate undo\" cannot undo it: %v", err)
	}
}

// state returns the state of a device, without its assignments.
func (m *Machine) state(dev string) (s pending.Snapshot, err error) {
	s.Dev = dev
	now, err := m.Observe(dev)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		return s, nil
	case err == nil:
		s.Engine, s.Plan = now.Engine, &now.Plan
	}
	return s, err
}

// readAssigned adds the assignments to the present state of a device.
func (m *Machine) readAssigned(s *pending.Snapshot) (err error) {
	if s.Plan != nil {
		s.Assigned, err = m.Assignments(s.Engine, s.Dev)
	}
	return err
}

// snapshot returns the state of a device, with its assignments.
func (m *Machine) snapshot(dev string) (pending.Snapshot, error) {
	s, err := m.state(dev)
	if err != nil {
		return s, err
	}
	return s, m.readAssigned(&s)
}

// What happens to a manual change of a device that the agent owns.
const (
	ClearUndoneByAgent  = "the agent applies the configuration again at once: stop the agent, or remove the device from its files and reload it"
	ApplyUndoneAtReload = "the change holds until the agent reloads its files: change them too"
)

// CheckReservations returns an error for a device on which a running agent enforces reservations of its controllers: a
// manual change would end them.
func (m *Machine) CheckReservations(dev string) error {
	for _, origin := range agent.Origins(m.State, dev) {
		if origin == group.OriginReservation {
			return fmt.Errorf("%s carries reservations of the controller, which the change would end: cancel them, or stop the agent of this host first", dev)
		}
	}
	return nil
}

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
