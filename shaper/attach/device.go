package attach

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// The two hooks of a device, as indices.
const (
	Egress = iota
	Ingress
)

var (
	hooks     = [2]nl.Handle{nl.ClsactEgress, nl.ClsactIngress}
	hookNames = [2]string{"egress", "ingress"}
)

// Our filters: the first to be asked, so that no other ends the chain before the
// class is known.
const (
	filterPref = 1
	filterName = "headgate"
)

// Device is what a device has on its hooks, ours and not. It holds open maps.
type Device struct {
	Link   netlink.Link
	Clsact bool        // there is a clsact qdisc
	Qdiscs []nl.Object // all devices': the kernel lists them whatever is asked (see several)
	Sides  [2]Side     // by Egress, Ingress
	// Blocked is what makes hooks impossible, in words.
	Blocked []string
	// Other is the engine whose device it is, if it is another than asked.
	Other group.Engine

	around *Around
}

// Side is one hook.
type Side struct {
	Program ebpf.ProgramID // 0 if there is none of ours
	Maps    map[string]*ebpf.Map
	Record  *classifier.Record // nil if there is none, or none that can be read
	// Before and After are filters that are not ours, in words: those that are
	// asked before ours or stand in its place, and those that are asked after it.
	Before, After []string
}

// With reads a device as an engine sees it, and closes what that opened.
func With(dev string, engine group.Engine, do func(*nl.Conn, *Device) error) error {
	c, err := nl.Open()
	if err != nil {
		return permission(err)
	}
	defer c.Close()
	return permission(withQdiscs(c, dev, engine, func() ([]nl.Object, error) { return qdiscs(c) }, do))
}

// withQdiscs is With; list gives the qdiscs of all devices.
func withQdiscs(c *nl.Conn, dev string, engine group.Engine, list func() ([]nl.Object, error), do func(*nl.Conn, *Device) error) error {
	d, err := observe(c, dev, engine, list)
	if err != nil {
		return err
	}
	defer d.close()
	return do(c, d)
}

func qdiscs(c *nl.Conn) ([]nl.Object, error) {
	return c.Objects("qdiscs", unix.RTM_GETQDISC, nl.TC{})
}

func observe(c *nl.Conn, name string, engine group.Engine, list func() ([]nl.Object, error)) (*Device, error) {
	link, err := find(name)
	if err != nil {
		return nil, err
	}
	d := &Device{Link: link}
	if d.Qdiscs, err = list(); err == nil {
		err = d.read(c, engine)
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return d, nil
}

func find(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		if first, _, ok := strings.Cut(name, "@"); ok {
			return nil, fmt.Errorf("device %s: %w: \"ip link\" prints what it is joined to or stands on behind the @, so write %s", name, shaper.ErrNoDevice, first)
		}
		return nil, fmt.Errorf("device %s: %w", name, shaper.ErrNoDevice)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	return link, nil
}

func (d *Device) close() {
	for _, s := range d.Sides {
		classifier.Close(s.Maps)
	}
}

// Name is the device's name.
func (d *Device) Name() string { return d.Link.Attrs().Name }

// Index is the device's number.
func (d *Device) Index() int { return d.Link.Attrs().Index }

func (d *Device) read(c *nl.Conn, engine group.Engine) error {
	for _, q := range d.Qdiscs {
		switch {
		case q.Ifindex != d.Index():
		case q.Parent == nl.Clsact && q.Kind == "clsact":
			d.Clsact = true
			d.Sides[Ingress].readBlock(Ingress, q.IngressBlock)
			d.Sides[Egress].readBlock(Egress, q.EgressBlock)
		case q.Parent == nl.Clsact:
			d.Blocked = append(d.Blocked, "qdisc "+q.Kind)
		}
	}
	if !d.Clsact {
		return nil
	}
	for i := range d.Sides {
		if err := d.readHook(c, i, engine); err != nil {
			return err
		}
	}
	return nil
}

// readBlock tells of a hook that stands in for a shared block: it takes no filter
// for this device alone.
func (s *Side) readBlock(i int, block uint32) {
	if block != 0 {
		s.Before = append(s.Before, fmt.Sprintf("shared block %d at %s (make its clsact without %s_block)", block, hookNames[i], hookNames[i]))
	}
}

// readHook finds our filter and the others'.
func (d *Device) readHook(c *nl.Conn, i int, engine group.Engine) error {
	filters, err := c.Objects("filters", unix.RTM_GETTFILTER, nl.TC{Ifindex: d.Index(), Parent: hooks[i]})
	if err != nil {
		return err
	}
	s := &d.Sides[i]
	for _, f := range filters {
		if f.Handle == 0 {
			continue // the head of a chain, not a filter
		}
		name, id := "", uint32(0)
		if f.Kind == "bpf" {
			name, id = f.BPFFilter()
		}
		if f.IsBPFFilter(filterPref, filterName) {
			s.Program = ebpf.ProgramID(id)
			continue
		}
		what := fmt.Sprintf("%s filter %s pref %d", hookNames[i], f.Kind, f.Pref())
		if name != "" {
			what += " (" + printable(name) + ")"
		}
		if f.Pref() <= filterPref {
			s.Before = append(s.Before, what)
		} else {
			s.After = append(s.After, what)
		}
	}
	if s.Program == 0 {
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	// One without a record is the default engine's, to be replaced or cleared.
	owner := group.HTB
	if s.Record != nil {
		owner = s.Record.Engine
	}
	if owner != engine {
		d.Other = owner
		classifier.Close(s.Maps)
		s.Program, s.Maps, s.Record = 0, nil, nil
	}
	return nil
}

func (s *Side) open() (err error) {
	if s.Maps, err = classifier.Maps(s.Program); err != nil {
		return err
	}
	r, err := classifier.ReadRecord(s.Maps)
	switch {
	case err == nil:
		s.Record = &r
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, classifier.ErrRecord):
		// Without it nobody knows whose the class ids in the maps are, so that a new
		// program does not go on with them.
		slog.Warn("a program of Headgate's cannot be taken over: what it counted and what was assigned is lost at the next apply", "program", s.Program, "reason", err)
		classifier.Close(s.Maps)
		s.Maps = nil
	default:
		return err
	}
	return nil
}

// CheckEngine refuses a device that belongs to another engine.
func (d *Device) CheckEngine() error {
	if d.Other == "" {
		return nil
	}
	return fmt.Errorf("device %s is divided by the engine %s: run \"headgate clear --dev %s\" first", d.Name(), d.Other, d.Name())
}

// OwnsClsact tells whether the clsact qdisc was made by us.
func (d *Device) OwnsClsact() bool {
	for _, s := range d.Sides {
		if s.Record != nil && s.Record.Clsact {
			return true
		}
	}
	return false
}

// NeedsClsact tells whether clsact is ours once a program is attached: it is, or
// it is not there yet.
func (d *Device) NeedsClsact() bool { return !d.Clsact || d.OwnsClsact() }

// Foreign is the error for what is not ours and in the way.
func (d *Device) Foreign(what []string) error {
	if len(what) == 0 {
		return nil
	}
	what = slices.Clone(what)
	slices.Sort(what)
	return fmt.Errorf("device %s %w: %s; remove it, or leave this device to it",
		d.Name(), shaper.ErrForeign, strings.Join(slices.Compact(what), ", "))
}

// AddClsact makes the hooks if they are not there.
func (d *Device) AddClsact(b *nl.Batch) {
	if !d.Clsact {
		b.AddClsact(d.Index())
	}
}

// Attach puts a program on a hook, in the place of the one that is there.
func (d *Device) Attach(b *nl.Batch, side int, p *ebpf.Program) {
	b.SetBPFFilter(d.Index(), hooks[side], filterPref, p.FD(), filterName)
}

// Detach takes our program from a hook, if there is one.
func (d *Device) Detach(b *nl.Batch, side int) {
	if d.Sides[side].Program != 0 {
		b.DeleteBPFFilter(d.Index(), hooks[side], filterPref)
	}
}

// RemoveClsact takes clsact away if it is ours and nobody else uses it; our own
// programs are to be detached before.
func (d *Device) RemoveClsact(b *nl.Batch) {
	if d.OwnsClsact() {
		d.removeClsact(b)
	}
}

func (d *Device) removeClsact(b *nl.Batch) {
	if d.Other != "" {
		return
	}
	for _, s := range d.Sides {
		if len(s.Before)+len(s.After) > 0 {
			return
		}
	}
	b.DeleteQdisc(d.Index(), nl.ClsactHandle, nl.Clsact)
}

// Direction is what a plan wants of one hook.
type Direction struct {
	Tree *group.Tree // nil if it is not limited
	In   bool
}

// Directions are a plan's directions by Egress and Ingress: a guest's traffic
// goes through its device the other way round.
func Directions(p shaper.Plan) [2]Direction {
	if p.Perspective == group.Guest {
		return [2]Direction{Egress: {p.In, true}, Ingress: {p.Out, false}}
	}
	return [2]Direction{Egress: {p.Out, false}, Ingress: {p.In, true}}
}

func (d Direction) String() string {
	if d.In {
		return "in"
	}
	return "out"
}
