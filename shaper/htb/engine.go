package htb

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/internal/nl"
	"headgate/shaper"
)

// Engine is the HTB engine for the network namespace of the calling thread. It
// keeps no state: all of it is in the kernel.
type Engine struct{}

// New gives the engine.
func New() *Engine { return &Engine{} }

var _ shaper.Shaper = (*Engine)(nil)

// lockPath serialises changes by all processes of the machine.
const lockPath = "/run/headgate/lock"

// lock waits for its turn. The kernel drops it when the process dies.
func lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(lockPath), 0o755); err != nil {
		return nil, permission(err)
	}
	f, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, permission(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", lockPath, err)
	}
	return func() { f.Close() }, nil
}

// permission makes a refusal by the kernel one that callers know.
func permission(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w: %v", shaper.ErrPermission, err)
	}
	return err
}

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
func (e *Engine) Apply(p shaper.Plan) ([]shaper.Change, error) {
	unlock, err := lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []shaper.Change
	err = with(p.Dev, func(c *nl.Conn, k *kernel) error {
		m, err := newMove(k, p)
		if err != nil || m.empty() {
			return err
		}
		out = m.changes()
		return m.make(c)
	})
	return out, err
}

// Clear takes away all that is ours on the device.
func (e *Engine) Clear(dev string) error {
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	err = with(dev, func(c *nl.Conn, k *kernel) error {
		var b nl.Batch
		index := k.dev.Attrs().Index
		for i, s := range k.sides {
			if s.program != 0 {
				b.DeleteFilter(index, hooks[i], filterPref)
			}
		}
		if k.sides[egress].tree.present {
			b.DeleteQdisc(index, nl.MakeHandle(major, 0), nl.Root)
		}
		if k.ownsClsact() && len(k.foreign) == 0 {
			b.DeleteQdisc(index, nl.ClsactHandle, nl.Clsact)
		}
		if err := c.Execute(&b); err != nil {
			return err
		}
		for _, s := range k.sides {
			if s.record != nil && s.record.Token != 0 {
				forget(s.record.Token)
			}
		}
		return k.removeIFB()
	})
	sweepIFBs()
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil // and so is all that was on it
	}
	return err
}

// with reads a device and closes what that opened.
func with(dev string, do func(*nl.Conn, *kernel) error) error {
	c, err := nl.Open()
	if err != nil {
		return permission(err)
	}
	defer c.Close()
	k, err := observe(c, dev)
	if err != nil {
		return permission(err)
	}
	defer k.close()
	return permission(do(c, k))
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
	name := ifbName(k.dev.Attrs().Index)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Alias = name, k.dev.Attrs().MTU, ifbAlias(k.dev.Attrs().Name)
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
		if l.Type() == "ifb" && len(l.Attrs().Name) > 3 && l.Attrs().Name[:3] == "hgi" && !there[l.Attrs().Name] {
			if err := netlink.LinkDel(l); err != nil {
				slog.Warn("cannot remove the IFB of a device that is gone", "ifb", l.Attrs().Name, "error", err)
			}
		}
	}
}

// linkHeader is how many bytes come before the IP header.
func linkHeader(dev netlink.Link) uint32 {
	switch dev.Attrs().EncapType {
	case "none", "tunnel", "tunnel6", "sit", "gre", "gre6", "ppp", "ipip":
		return 0
	}
	return 14
}
