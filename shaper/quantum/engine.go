package quantum

import (
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
)

// Engine is the quantum engine for the network namespace of the calling thread. It has no state
// of its own: all state is in the kernel.
type Engine struct{}

// New returns the engine.
func New() *Engine { return &Engine{} }

var _ shaper.BatchShaper = (*Engine)(nil)

func with(dev string, do func(*nl.Conn, *attach.Device) error) error {
	return attach.With(dev, group.Quantum, do)
}

// Diff returns the changes that Apply would make. On a device of another engine, it returns the
// changes that Apply would make after a Clear.
func (e *Engine) Diff(p shaper.Plan) (out []shaper.Change, err error) {
	err = with(p.Dev, func(_ *nl.Conn, d *attach.Device) error {
		m, err := newTransition(d, p)
		if err == nil {
			out = m.changes()
		}
		return err
	})
	return out, err
}

// Apply makes the plan the actual state.
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
	m, err := newTransition(d, p)
	if err != nil {
		return nil, err
	}
	if m.empty() {
		return nil, d.DeleteStaleAssignments(d.Shared(), d.Sides[attach.Egress].Record, d.Sides[attach.Ingress].Record)
	}
	return m.changes(), m.make(c)
}

// ApplyAll applies several plans concurrently.
func (e *Engine) ApplyAll(plans []shaper.Plan) []shaper.Applied {
	return attach.ApplyAll(plans, group.Quantum, e.apply)
}

// Sweep does nothing: all objects of this engine are removed with their device.
func (e *Engine) Sweep() ([]string, error) { return nil, nil }

// Clear removes everything that Headgate created on the device.
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
		return nil // the objects were removed with the device
	}
	return err
}

// Assign assigns connections to groups, with precedence over all rules. It resets the limits of
// the directions that have these groups, as adding a connection does in the seed. (Removing one
// resets nothing, as in the seed.)
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, d *attach.Device) error {
			if err := d.Assign(list); err != nil {
				return err
			}
			return requestResets(d, list)
		})
	})
}

// requestResets requests a reset in each direction that has a group of the list.
func requestResets(d *attach.Device, list []shaper.Assignment) error {
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
			return fmt.Errorf("device %s: cannot reset the limits after an assignment: %w", d.Name(), err)
		}
	}
	return nil
}

// Unassign removes assignments, so that the rules apply again. A connection that is not
// assigned is an error that names it; the other connections are still unassigned.
func (e *Engine) Unassign(dev string, list []shaper.Conn) error {
	return attach.Locked(func() error {
		return with(dev, func(_ *nl.Conn, d *attach.Device) error { return d.Unassign(list) })
	})
}

// Assigned returns the group that a connection is assigned to on a device, or "" if there is
// none.
func (e *Engine) Assigned(dev string, c shaper.Conn) (path string, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) (err error) {
		path, err = d.Assigned(c)
		return err
	})
	return path, err
}

// Assignments lists the assigned connections of a device.
func (e *Engine) Assignments(dev string) (out []shaper.Assignment, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) (err error) {
		out, err = d.Assignments()
		return err
	})
	return out, err
}
