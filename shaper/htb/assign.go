package htb

import (
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
)

// Assign puts connections into groups, before every rule.
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, k *kernel) error { return k.Assign(list) })
	})
}

// Unassign returns connections to the rules. One that is not assigned is an
// error that names it; the others are returned all the same.
func (e *Engine) Unassign(dev string, list []shaper.Conn) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, k *kernel) error { return k.Unassign(list) })
	})
}

// Assigned is the group that a connection is assigned to on a device, "" if it is to none.
func (e *Engine) Assigned(dev string, c shaper.Conn) (path string, err error) {
	err = with(dev, func(_ *nl.Conn, k *kernel) (err error) {
		path, err = k.Assigned(c)
		return err
	})
	return path, err
}

// Assignments lists the connections that are assigned on a device.
func (e *Engine) Assignments(dev string) (out []shaper.Assignment, err error) {
	err = with(dev, func(_ *nl.Conn, k *kernel) (err error) {
		out, err = k.Assignments()
		return err
	})
	return out, err
}
