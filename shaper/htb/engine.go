package htb

import (
	"errors"

	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
)

// Engine is the HTB engine for the network namespace of the calling thread. It
// keeps no state: all of it is in the kernel.
type Engine struct{}

// New gives the engine.
func New() *Engine { return &Engine{} }

var _ shaper.Shaper = (*Engine)(nil)

// Diff tells what Apply would do and changes nothing.
func (e *Engine) Diff(p shaper.Plan) ([]shaper.Change, error) {
	var out []shaper.Change
	err := with(p.Dev, func(c *nl.Conn, k *kernel) error {
		m, err := newMove(k, p)
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
		return with(p.Dev, func(c *nl.Conn, k *kernel) error {
			if err := k.CheckEngine(); err != nil {
				return err
			}
			m, err := newMove(k, p)
			if err != nil {
				return err
			}
			if m.empty() {
				return k.Forget(k.Shared(), k.sides[egress].Record, k.sides[ingress].Record)
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
		err := with(dev, func(c *nl.Conn, k *kernel) error { return k.clear(c) })
		sweep()
		return err
	})
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil // and so is all that was on it
	}
	return err
}

func (k *kernel) clear(c *nl.Conn) error {
	var b nl.Batch
	for i := range k.sides {
		k.Detach(&b, i)
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

// sweep removes what devices left that are gone.
func sweep() {
	sweepIFBs()
	sweepTokens()
}
