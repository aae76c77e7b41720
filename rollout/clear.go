package rollout

import (
	"errors"
	"fmt"

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
// which the caller has locked. The error joins those of all devices.
func (m *Machine) ClearDevices(store *pending.Store, devices []string) (list []Cleared, _ error) {
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
		failed = append(failed, store.Drop(d))
	}
	return list, errors.Join(failed...)
}
