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
	var todo []clearing
	for _, d := range devices {
		c := clearing{dev: d, refused: m.CheckReservations(d)}
		if c.refused == nil {
			s, err := m.snapshot(d)
			// The remains of a state that cannot be read cannot be restored either.
			if err == nil && s.Plan != nil {
				before = append(before, s)
			}
			c.unknown, c.clear = err, err == nil && s.Plan == nil
		}
		todo = append(todo, c)
	}
	if within > 0 {
		if err := m.replacePending(store); err != nil {
			return nil, until, err
		}
	}
	m.record(store, "clear", before, nil)
	if len(before) == 0 {
		within = 0
	}
	until, err = m.confirmable(store, before, within, func() (err error) {
		list, err = m.clearDevices(store, todo, within > 0)
		return err
	})
	return list, until, err
}

// clearing is a device that is to be cleared.
type clearing struct {
	dev     string
	refused error // why it is not cleared
	unknown error // why its state is not known
	clear   bool  // there is nothing to clear
}

// clearDevices clears devices. It removes them from the pending change, unless that is this one.
func (m *Machine) clearDevices(store *pending.Store, todo []clearing, confirmable bool) (list []Cleared, _ error) {
	var failed []error
	for _, c := range todo {
		if c.refused != nil {
			failed = append(failed, c.refused)
			continue
		}
		d := c.dev
		// Clear also if the state cannot be read: the remains of a broken state, or of a
		// removed device, are Headgate's too.
		if err := m.Clear(d); err != nil {
			failed = append(failed, err)
			continue
		}
		switch {
		case errors.Is(c.unknown, shaper.ErrNoDevice):
			failed = append(failed, c.unknown)
		case c.clear:
			list = append(list, Cleared{d, false})
		default:
			list = append(list, Cleared{d, true})
			m.NoteOwner(ClearUndoneByAgent, d)
		}
		if !confirmable {
			failed = append(failed, store.Drop(d))
		}
	}
	return list, errors.Join(failed...)
}
