package quantum

import (
	"errors"
	"fmt"
	"slices"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
)

// Engine is the quantum engine for the network namespace of the calling thread.
// It keeps no state: all of it is in the kernel.
type Engine struct{}

// New gives the engine.
func New() *Engine { return &Engine{} }

var _ shaper.Several = (*Engine)(nil)

func with(dev string, do func(*nl.Conn, *attach.Device) error) error {
	return attach.With(dev, group.Quantum, do)
}

// Diff tells what Apply would do and changes nothing. On a device of another
// engine, it tells what Apply would do once that is cleared.
func (e *Engine) Diff(p shaper.Plan) (out []shaper.Change, err error) {
	err = with(p.Dev, func(_ *nl.Conn, d *attach.Device) error {
		m, err := newMove(d, p)
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
		return with(p.Dev, func(c *nl.Conn, d *attach.Device) (err error) {
			out, err = e.apply(c, d, p)
			return err
		})
	})
	return out, err
}

func (e *Engine) apply(c *nl.Conn, d *attach.Device, p shaper.Plan) ([]shaper.Change, error) {
	if err := d.CheckEngine(); err != nil {
		return nil, err
	}
	m, err := newMove(d, p)
	if err != nil {
		return nil, err
	}
	if m.empty() {
		return nil, d.Forget(d.Shared(), d.Sides[attach.Egress].Record, d.Sides[attach.Ingress].Record)
	}
	return m.changes(), m.make(c)
}

// ApplyAll makes several plans so, a few at the same time.
func (e *Engine) ApplyAll(plans []shaper.Plan) []shaper.Applied {
	return attach.ApplyAll(plans, group.Quantum, e.apply)
}

// Sweep has nothing to do: all that this engine makes goes with its device.
func (e *Engine) Sweep() ([]string, error) { return nil, nil }

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

// Assign puts connections into groups, before every rule. It resets the limits of
// the directions that have these groups, as adding a connection to one direction
// does in the seed. (Taking one away resets nothing, there and here.)
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, d *attach.Device) error {
			if err := d.Assign(list); err != nil {
				return err
			}
			return askResets(d, list)
		})
	})
}

// askResets asks for a reset in each direction that has a group of the list.
func askResets(d *attach.Device, list []shaper.Assignment) error {
	for i := range d.Sides {
		s := &d.Sides[i]
		has := func(a shaper.Assignment) bool {
			return slices.ContainsFunc(s.Record.Tree().Nodes, func(n group.Node) bool { return n.Path == a.Group })
		}
		if s.Record == nil || s.Maps[resetsMap] == nil || !slices.ContainsFunc(list, has) {
			continue
		}
		var asked uint32
		err := s.Maps[resetsMap].Lookup(uint32(0), &asked)
		if err == nil {
			err = s.Maps[resetsMap].Put(uint32(0), asked+1)
		}
		if err != nil {
			return fmt.Errorf("device %s: cannot reset the limits for the connections that were assigned: %w", d.Name(), err)
		}
	}
	return nil
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
