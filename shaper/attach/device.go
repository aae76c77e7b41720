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

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// Indices of the two hooks of a device.
const (
	Egress = iota
	Ingress
)

var (
	hooks     = [2]nl.Handle{nl.ClsactEgress, nl.ClsactIngress}
	hookNames = [2]string{"egress", "ingress"}
)

// Headgate's filters have the highest precedence, so that no other filter ends the chain before
// the class is set.
const (
	filterPref = 1
	filterName = "headgate"
)

// Device is the state of a device's hooks: Headgate's programs and foreign objects. It holds
// open maps.
type Device struct {
	Link   netlink.Link
	Clsact bool        // the device has a clsact qdisc
	Qdiscs []nl.Object // of all devices: the kernel always lists all (see forEach)
	Sides  [2]Side     // by Egress, Ingress
	// Blocked describes objects that make the hooks unusable.
	Blocked []string
	// OtherEngine is the engine that the device belongs to, if it is not the requested engine.
	OtherEngine group.Engine

	ingressPath *IngressPath
}

// Side is one hook.
type Side struct {
	Program ebpf.ProgramID // 0 if Headgate has no program there
	Maps    map[string]*ebpf.Map
	Record  *classifier.Record // nil if missing or unreadable
	// Before and After describe foreign filters: those with precedence over Headgate's or in
	// its place, and those after it.
	Before, After []string
}

// With reads the state of a device for an engine, calls do, and closes the maps.
func With(dev string, engine group.Engine, do func(*nl.Conn, *Device) error) error {
	c, err := nl.Open()
	if err != nil {
		return permission(err)
	}
	defer c.Close()
	return permission(withQdiscs(c, dev, engine, func() ([]nl.Object, error) { return qdiscs(c) }, do))
}

// withQdiscs is With, where list returns the qdiscs of all devices.
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
			return nil, fmt.Errorf("device %s: %w: \"ip link\" appends the peer or lower device after the @: write %s", name, shaper.ErrNoDevice, first)
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

// Name returns the device's name.
func (d *Device) Name() string { return d.Link.Attrs().Name }

// Index returns the device's index.
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

// readBlock records a hook that uses a shared block: such a hook accepts no filters for only
// this device.
func (s *Side) readBlock(i int, block uint32) {
	if block != 0 {
		s.Before = append(s.Before, fmt.Sprintf("shared block %d at %s (create its clsact without %s_block)", block, hookNames[i], hookNames[i]))
	}
}

// readHook reads the filters of a hook, Headgate's and foreign.
func (d *Device) readHook(c *nl.Conn, i int, engine group.Engine) error {
	filters, err := c.Objects("filters", unix.RTM_GETTFILTER, nl.TC{Ifindex: d.Index(), Parent: hooks[i]})
	if err != nil {
		return err
	}
	s := &d.Sides[i]
	for _, f := range filters {
		if f.Handle == 0 {
			continue // a chain head, not a filter
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
	// A program without a record belongs to the default engine, which replaces or clears it.
	owner := group.HTB
	if s.Record != nil {
		owner = s.Record.Engine
	}
	if owner != engine {
		d.OtherEngine = owner
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
		// Without a record, the class IDs in the maps cannot be mapped to groups, so a new
		// program must not reuse the maps.
		slog.Warn("cannot take over eBPF program; its counters and assignments are lost at the next apply", "program", s.Program, "reason", err)
		classifier.Close(s.Maps)
		s.Maps = nil
	default:
		return err
	}
	return nil
}

// CheckEngine returns an error if the device belongs to another engine.
func (d *Device) CheckEngine() error {
	if d.OtherEngine == "" {
		return nil
	}
	return fmt.Errorf("device %s is configured with the engine %s: run \"headgate clear --dev %s\" first", d.Name(), d.OtherEngine, d.Name())
}

// OwnsClsact reports whether Headgate created the clsact qdisc.
func (d *Device) OwnsClsact() bool {
	for _, s := range d.Sides {
		if s.Record != nil && s.Record.Clsact {
			return true
		}
	}
	return false
}

// NeedsClsact reports whether Headgate owns clsact after attaching a program: it owns clsact
// already, or clsact does not exist yet.
func (d *Device) NeedsClsact() bool { return !d.Clsact || d.OwnsClsact() }

// Foreign returns the error for foreign objects that conflict, or nil if there are none.
func (d *Device) Foreign(what []string) error {
	if len(what) == 0 {
		return nil
	}
	what = slices.Clone(what)
	slices.Sort(what)
	return fmt.Errorf("device %s %w: %s: remove it, or do not configure this device",
		d.Name(), shaper.ErrForeign, strings.Join(slices.Compact(what), ", "))
}

// AddClsact adds the clsact qdisc if it does not exist.
func (d *Device) AddClsact(b *nl.Batch) {
	if !d.Clsact {
		b.AddClsact(d.Index())
	}
}

// Attach attaches a program to a hook, replacing Headgate's previous program.
func (d *Device) Attach(b *nl.Batch, side int, p *ebpf.Program) {
	b.SetBPFFilter(d.Index(), hooks[side], filterPref, p.FD(), filterName)
}

// Detach detaches Headgate's program from a hook, if there is one.
func (d *Device) Detach(b *nl.Batch, side int) {
	if d.Sides[side].Program != 0 {
		b.DeleteBPFFilter(d.Index(), hooks[side], filterPref)
	}
}

// RemoveClsact removes clsact if Headgate owns it and no foreign filter uses it. Headgate's own
// programs must be detached before.
func (d *Device) RemoveClsact(b *nl.Batch) {
	if d.OwnsClsact() {
		d.removeClsact(b)
	}
}

func (d *Device) removeClsact(b *nl.Batch) {
	if d.OtherEngine != "" {
		return
	}
	for _, s := range d.Sides {
		if len(s.Before)+len(s.After) > 0 {
			return
		}
	}
	b.DeleteQdisc(d.Index(), nl.ClsactHandle, nl.Clsact)
}

// Direction is the part of a plan for one hook.
type Direction struct {
	Tree *group.Tree // nil if it is not limited
	In   bool
}

// Directions returns a plan's directions indexed by Egress and Ingress. For a guest, "out" is
// the ingress of the device.
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
