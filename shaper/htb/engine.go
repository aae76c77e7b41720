package htb

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/vishvananda/netlink"

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
			if err != nil || m.empty() {
				return err
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

func (k *kernel) removeIFB() error {
	ifb := k.sides[ingress].qdisc
	if ifb == nil {
		return nil
	}
	if err := netlink.LinkDel(ifb); err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf("cannot remove device %s: %w", ifb.Attrs().Name, err)
	}
	return nil
}

// addIFB makes the device that ingress is redirected to.
func (k *kernel) addIFB() error {
	name := ifbName(k.Index())
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Alias = name, k.Link.Attrs().MTU, ifbAlias(k.Name())
	err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: attrs})
	if err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("cannot make an IFB, on which \"in\" is shaped (kernel option CONFIG_IFB): %w", err)
	}
	ifb, err := netlink.LinkByName(name)
	if err == nil {
		err = errors.Join(netlink.LinkSetAlias(ifb, attrs.Alias), netlink.LinkSetUp(ifb))
	}
	if err != nil {
		return fmt.Errorf("cannot set up device %s: %w", name, err)
	}
	k.sides[ingress].qdisc = ifb
	return nil
}

// sweep removes what devices left that are gone.
func sweep() {
	sweepIFBs()
	sweepTokens()
}

// sweepIFBs removes the IFBs of devices that are gone.
func sweepIFBs() {
	links, err := netlink.LinkList()
	if err != nil {
		return
	}
	there := map[string]bool{}
	for _, l := range links {
		there[ifbName(l.Attrs().Index)] = true
	}
	for _, l := range links {
		if isOurIFB(l) && !there[l.Attrs().Name] {
			if err := netlink.LinkDel(l); err != nil {
				slog.Warn("cannot remove the IFB of a device that is gone", "ifb", l.Attrs().Name, "error", err)
			}
		}
	}
}
