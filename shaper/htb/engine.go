package htb

import (
	"errors"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
)

// Engine is the HTB engine for the network namespace of the calling thread. It has no state of
// its own: all state is in the kernel.
type Engine struct{}

// New returns the engine.
func New() *Engine { return &Engine{} }

var _ shaper.BatchShaper = (*Engine)(nil)

// Diff returns the changes that Apply would make.
func (e *Engine) Diff(p shaper.Plan) ([]shaper.Change, error) {
	var out []shaper.Change
	err := with(p.Dev, func(c *nl.Conn, k *kernel) error {
		m, err := newTransition(k, p)
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
		return with(p.Dev, func(c *nl.Conn, k *kernel) (err error) {
			if out, err = k.apply(c, p); err == nil && len(out) > 0 {
				sweep()
			}
			return err
		})
	})
	return out, err
}

func (k *kernel) apply(c *nl.Conn, p shaper.Plan) ([]shaper.Change, error) {
	if err := k.CheckEngine(); err != nil {
		return nil, err
	}
	m, err := newTransition(k, p)
	if err != nil {
		return nil, err
	}
	if m.empty() {
		return nil, k.DeleteStaleAssignments(k.Shared(), k.sides[egress].Record, k.sides[ingress].Record)
	}
	return m.changes(), m.make(c)
}

// ApplyAll applies several plans concurrently.
func (e *Engine) ApplyAll(plans []shaper.Plan) []shaper.Applied {
	return attach.ApplyAll(plans, group.HTB, func(c *nl.Conn, d *attach.Device, p shaper.Plan) (out []shaper.Change, err error) {
		err = withDevice(c, d, func(c *nl.Conn, k *kernel) (err error) {
			out, err = k.apply(c, p)
			return err
		})
		return out, err
	})
}

// Clear removes everything that Headgate created on the device.
func (e *Engine) Clear(dev string) error {
	err := attach.Locked(func() error {
		err := with(dev, func(c *nl.Conn, k *kernel) error { return k.clear(c) })
		sweep()
		return err
	})
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil // the objects were removed with the device
	}
	return err
}

func (k *kernel) clear(c *nl.Conn) error {
	if err := k.RemoveForward(); err != nil {
		return err
	}
	var b nl.Batch
	for i := range k.sides {
		k.Detach(&b, i)
		if s, ok := k.sizeStep(i, nil); ok {
			s.add(&b, k.Index())
		}
	}
	if k.sides[egress].tree.present {
		b.DeleteQdisc(k.Index(), nl.MakeHandle(major, 0), nl.Root)
	}
	k.RemoveClsact(&b)
	if err := c.Execute(&b); err != nil {
		return err
	}
	for _, s := range k.sides {
		if s.Record != nil && s.Record.Token != 0 {
			forget(s.Record.Token)
		}
	}
	return k.removeIFB()
}

// Sweep is the garbage collection: it removes the objects that removed devices left behind, and returns the names of the IFBs
// among them. Apply and Clear of one device sweep too.
func (e *Engine) Sweep() (removed []string, err error) {
	err = attach.Locked(func() error { removed = sweep(); return nil })
	return removed, err
}

func sweep() (removed []string) {
	attach.SweepForwards()
	removed = sweepIFBs()
	sweepTokens()
	return removed
}
