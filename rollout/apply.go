package rollout

import (
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// ErrNoted is the error of a failed change that was rolled back: both were noted.
var ErrNoted = errors.New("the change failed, and was rolled back")

// Apply applies the steps that compare returns, under the lock for changes, and passes each to done once it is in
// force. If within is not 0, it returns the time until which the changes must be confirmed; zero if there are none.
func (m *Machine) Apply(compare func() ([]Step, error), within time.Duration, done func(Step)) (until time.Time, err error) {
	store, unlock, err := m.Lock()
	if err != nil {
		return until, err
	}
	defer unlock()
	if err := m.replacePending(store); err != nil {
		return until, err
	}
	steps, err := compare()
	if err != nil {
		return until, fmt.Errorf("nothing was changed: %w", err)
	}
	var todo []Step
	for _, s := range steps {
		if len(s.Changes) == 0 {
			done(s)
		} else {
			todo = append(todo, s)
		}
	}
	for _, s := range todo {
		if err := m.CheckReservations(s.Dev); err != nil {
			return until, fmt.Errorf("nothing was changed: %w", err)
		}
	}
	if len(todo) == 0 {
		return until, nil
	}
	before, err := m.snapshots(todo)
	if err != nil && within > 0 {
		return until, fmt.Errorf("nothing was changed: %w", err)
	}
	m.record(store, "apply", before, err)
	return m.confirmable(store, before, within, func() error { return m.applySteps(todo, done) })
}

// snapshots returns the state of the devices before steps.
func (m *Machine) snapshots(steps []Step) (before []pending.Snapshot, err error) {
	for _, s := range steps {
		if err := m.readAssigned(&s.before); err != nil {
			return nil, fmt.Errorf("cannot read the assignments of %s for the rollback: %w", s.Dev, err)
		}
		before = append(before, s.before)
	}
	return before, nil
}

// applySteps applies one device after the other. It stops at the first failure;
// the error has the number of devices that were applied.
func (m *Machine) applySteps(steps []Step, done func(Step)) error {
	for i, s := range steps {
		if err := m.applyStep(s, done); err != nil {
			if i > 0 || i+1 < len(steps) {
				err = fmt.Errorf("%w (applied %d of %d devices: apply again to continue)", err, i, len(steps))
			}
			return err
		}
	}
	return nil
}

func (m *Machine) applyStep(s Step, done func(Step)) error {
	engine, err := m.Engine(s.Engine)
	if err != nil {
		return err
	}
	if s.before.Plan != nil && s.before.Engine != s.Engine {
		if err := m.Engines[s.before.Engine].Clear(s.Dev); err != nil {
			return err
		}
	}
	changes, err := engine.Apply(s.plan)
	if err != nil {
		return err
	}
	s.Changes = append([]shaper.Change{}, changes...)
	done(s)
	m.NoteOwner(ApplyUndoneAtReload, s.Dev)
	return nil
}

// replacePending prepares for a new change. It returns an error while a former change waits for
// confirmation or is being rolled back, and deletes the record of a former change without a
// waiting process.
func (m *Machine) replacePending(store *pending.Store) error {
	c, stage, err := store.Read()
	if err != nil {
		return err
	}
	switch stage {
	case pending.None:
		return nil
	case pending.Waiting, pending.RollingBack:
		return fmt.Errorf("%s (\"headgate confirm --roll-back\" does so now)", store.Describe(c, stage))
	}
	m.Note("headgate: %s; this replaces it", store.Describe(c, stage))
	return store.Forget()
}

// confirmable makes a change that is rolled back unless the user confirms it within a time; 0 is a change that needs no confirmation.
// The process that rolls back is started before the change.
func (m *Machine) confirmable(store *pending.Store, before []pending.Snapshot, within time.Duration, change func() error) (until time.Time, err error) {
	if within == 0 {
		return until, change()
	}
	waiting := store.New(within, before)
	if err := store.Write(waiting); err != nil {
		return until, err
	}
	if err := m.Wait(waiting.ID); err != nil {
		return until, errors.Join(fmt.Errorf("nothing was changed: cannot start the rollback process: %w", err), store.Forget())
	}
	if err := change(); err != nil {
		m.Note("headgate: %v", err)
		if err := store.RollBack(waiting, m.Restore); err != nil {
			return until, err
		}
		m.Note("headgate: what was changed has been rolled back")
		return until, ErrNoted
	}
	return waiting.Deadline(), nil
}

// Restore returns a device to a snapshot.
func (m *Machine) Restore(b pending.Snapshot) error {
	if b.Plan == nil {
		return ignoreNoDevice(m.Clear(b.Dev))
	}
	engine, err := m.Engine(b.Engine)
	if err != nil {
		return err
	}
	for _, name := range m.EngineNames() {
		if name != b.Engine {
			if err := m.Engines[name].Clear(b.Dev); ignoreNoDevice(err) != nil {
				return err
			}
		}
	}
	if _, err := engine.Apply(*b.Plan); err != nil {
		return ignoreNoDevice(err)
	}
	// Assign the connections again: those in groups that the change removed follow the rules since.
	if len(b.Assigned) > 0 {
		if err := engine.Assign(b.Dev, b.Assigned); ignoreNoDevice(err) != nil {
			return fmt.Errorf("cannot assign the connections again; the groups are restored: %w", err)
		}
	}
	return nil
}

// ignoreNoDevice returns nil for a device that does not exist any more, because its state is gone with it.
func ignoreNoDevice(err error) error {
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil
	}
	return err
}
