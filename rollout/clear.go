package rollout

import (
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

// Cleared is the outcome for a device that was to be cleared.
type Cleared struct {
	Dev     string `json:"dev"`
	Cleared bool   `json:"cleared"` // false if there was nothing to clear
}

// String returns the outcome with the device.
func (c Cleared) String() string {
	what := "nothing to clear"
	if c.Cleared {
		what = "cleared"
	}
	return fmt.Sprintf("%s: %s", c.Dev, what)
}

// ClearDevices removes Headgate's traffic control from devices, and removes them from a pending change in store,
// which the caller has locked. If within is not 0, it returns the time until which the change must be confirmed; zero if there is
// none. The error joins those of all devices.
func (m *Machine) ClearDevices(store *pending.Store, devices []string, within time.Duration) (list []Cleared, until time.Time, err error) {
	var before []pending.Snapshot
	for _, d := range devices {
		if m.CheckReservations(d) != nil {
			continue // it is not cleared
		}
		// The remains of a state that cannot be read cannot be restored either.
		if s, err := m.Snapshot(d); err == nil && s.Plan != nil {
			before = append(before, s)
		}
	}
	if within > 0 {
		if err := m.replacePending(store); err != nil {
			return nil, until, err
		}
	}
	m.record(store, "clear", before)
	if len(before) == 0 {
		within = 0
	}
	until, err = m.confirmable(store, before, within, func() (err error) {
		list, err = m.clearDevices(store, devices, within > 0)
		return err
	})
	return list, until, err
}

// clearDevices clears devices. It removes them from the pending change, unless that is this one.
func (m *Machine) clearDevices(store *pending.Store, devices []string, pending bool) (list []Cleared, _ error) {
	var failed []error
	for _, d := range devices {
		if err := m.CheckReservations(d); err != nil {
			failed = append(failed, err)
			continue
		}
		_, before := m.Observe(d)
		// Clear also if the state cannot be read: the remains of a broken state, or of a
		// removed device, are Headgate's too.
		if err := m.Clear(d); err != nil {
			failed = append(failed, err)
			continue
		}
		switch {
		case errors.Is(before, shaper.ErrNoDevice):
			failed = append(failed, before)
		case errors.Is(before, shaper.ErrNotShaped):
			list = append(list, Cleared{d, false})
		default:
			list = append(list, Cleared{d, true})
			m.NoteOwner(ClearUndoneByAgent, d)
		}
		if !pending {
			failed = append(failed, store.Drop(d))
		}
	}
	return list, errors.Join(failed...)
}
