package rollout

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// Undo returns devices to the state before a change of the history, under the lock for changes: all devices of the change, or those of
// devs. If within is not 0, the undo must be confirmed until the returned time. An undo is a change of the history too, so that it can
// be undone.
func (m *Machine) Undo(number int, devs []string, within time.Duration) (restored []pending.Snapshot, until time.Time, err error) {
	store, unlock, err := m.Lock()
	if err != nil {
		return nil, until, err
	}
	defer unlock()
	if err := m.replacePending(store); err != nil {
		return nil, until, err
	}
	change, err := store.Done(number)
	if err != nil {
		return nil, until, err
	}
	if restored, err = chosen(change, devs); err != nil {
		return nil, until, err
	}
	var before []pending.Snapshot
	for _, s := range restored {
		if err := m.CheckReservations(s.Dev); err != nil {
			return nil, until, fmt.Errorf("nothing was changed: %w", err)
		}
		now, err := m.snapshot(s.Dev)
		if err != nil {
			return nil, until, fmt.Errorf("nothing was changed: %w", err)
		}
		before = append(before, now)
	}
	m.record(store, "undo", before, nil)
	until, err = m.confirmable(store, before, within, func() error {
		var failed []error
		for _, s := range restored {
			if err := m.Restore(s); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", s.Dev, shaper.WithPermission(err)))
				continue
			}
			m.NoteOwner(ApplyUndoneAtReload, s.Dev)
		}
		return errors.Join(failed...)
	})
	return restored, until, err
}

// chosen returns the snapshots of some devices of a change, or of all for none.
func chosen(change pending.Done, devs []string) (all []pending.Snapshot, err error) {
	if len(devs) == 0 {
		return change.Devices, nil
	}
	for _, dev := range devs {
		n := slices.IndexFunc(change.Devices, func(s pending.Snapshot) bool { return s.Dev == dev })
		if n < 0 {
			return nil, fmt.Errorf("change %d did not change %s: \"headgate history\" lists the changes with their devices", change.Number, dev)
		}
		all = append(all, change.Devices[n])
	}
	return all, nil
}
