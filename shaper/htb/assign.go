package htb

import (
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
)

// Assign assigns connections to groups, with precedence over all rules.
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, k *kernel) error { return k.Assign(list) })
	})
}

// Unassign removes assignments, so that the rules apply again. A connection that is not
// assigned is an error that names it; the other connections are still unassigned.
func (e *Engine) Unassign(dev string, list []shaper.Conn) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, k *kernel) error { return k.Unassign(list) })
	})
}

// Assigned returns the group that a connection is assigned to on a device, or "" if there is
// none.
func (e *Engine) Assigned(dev string, c shaper.Conn) (path string, err error) {
	err = with(dev, func(_ *nl.Conn, k *kernel) (err error) {
		path, err = k.Assigned(c)
		return err
	})
	return path, err
}

// Assignments lists the assigned connections of a device.
func (e *Engine) Assignments(dev string) (out []shaper.Assignment, err error) {
	err = with(dev, func(_ *nl.Conn, k *kernel) (err error) {
		out, err = k.Assignments()
		return err
	})
	return out, err
}
