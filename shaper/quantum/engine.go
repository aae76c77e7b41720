package quantum

import (
	"encoding/json"
	"errors"
	"fmt"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
)

// Engine is the quantum engine for the network namespace of the calling thread.
// It keeps no state: all of it is in the kernel.
type Engine struct{ options Options }

// New gives the engine.
func New(o Options) *Engine { return &Engine{o} }

var _ shaper.Shaper = (*Engine)(nil)

func with(dev string, do func(*nl.Conn, *attach.Device) error) error {
	return attach.With(dev, group.Quantum, do)
}

// Diff tells what Apply would do and changes nothing. On a device of another
// engine, it tells what Apply would do once that is cleared.
func (e *Engine) Diff(p shaper.Plan) (out []shaper.Change, err error) {
	err = with(p.Dev, func(_ *nl.Conn, d *attach.Device) error {
		m, err := newMove(d, p, e.options)
		if err == nil {
			out = m.changes()
		}
		return err
	})
	return out, err
}

// Apply makes the plan so.
func (e *Engine) Apply(p shaper.Plan) (out []shaper.Change, err error) {
	err = attach.Locked(func() error {
		return with(p.Dev, func(c *nl.Conn, d *attach.Device) error {
			if err := d.CheckEngine(); err != nil {
				return err
			}
			m, err := newMove(d, p, e.options)
			if err != nil {
				return err
			}
			if m.empty() {
				return d.Forget(d.Shared(), d.Sides[attach.Egress].Record, d.Sides[attach.Ingress].Record)
			}
			out = m.changes()
			return m.make(c)
		})
	})
	return out, err
}

// Clear takes away all that is ours on the device.
func (e *Engine) Clear(dev string) error {
	err := attach.Locked(func() error {
		return with(dev, func(c *nl.Conn, d *attach.Device) error {
			var b nl.Batch
			for i := range d.Sides {
				d.Detach(&b, i)
			}
			d.RemoveClsact(&b)
			return c.Execute(&b)
		})
	})
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil // and so is all that was on it
	}
	return err
}

// Assign puts connections into groups, before every rule. It resets all limits,
// as adding a connection does in the seed.
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, d *attach.Device) error { return d.Assign(list) })
	})
}

// Unassign returns connections to the rules. One that is not assigned is an
// error that names it; the others are returned all the same.
func (e *Engine) Unassign(dev string, list []shaper.Conn) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, d *attach.Device) error { return d.Unassign(list) })
	})
}

// Assigned is the group that a connection is assigned to on a device, "" if it is to none.
func (e *Engine) Assigned(dev string, c shaper.Conn) (path string, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) (err error) {
		path, err = d.Assigned(c)
		return err
	})
	return path, err
}

// Assignments lists the connections that are assigned on a device.
func (e *Engine) Assignments(dev string) (out []shaper.Assignment, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) (err error) {
		out, err = d.Assignments()
		return err
	})
	return out, err
}

// OptionsOf are the options that are in force on a device.
func OptionsOf(dev string) (o Options, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) error {
		s, ok := inForce(d)
		if !ok {
			return fmt.Errorf("device %s %w", dev, shaper.ErrNotShaped)
		}
		o = s.Options
		return nil
	})
	return o, err
}

// inForce are the settings of the programs that are attached.
func inForce(d *attach.Device) (s settings, ok bool) {
	for _, side := range d.Sides {
		if side.Record != nil {
			return s, json.Unmarshal(side.Record.Options, &s) == nil
		}
	}
	return s, false
}
