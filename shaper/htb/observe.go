package htb

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// Our filters: the first to be asked, so that no other ends the chain before the
// class is known.
const (
	filterPref = 1
	filterName = "headgate"
)

// kernel is what a device has, ours and not.
type kernel struct {
	dev     netlink.Link
	clsact  bool
	root    nl.Object // the device's root qdisc
	sides   [2]side   // by egress, ingress
	foreign []string  // what is in the way of nothing, in words
	blocked []error   // what is in the way, by the side it blocks
}

const (
	egress = iota
	ingress
)

var hooks = [2]nl.Handle{nl.ClsactEgress, nl.ClsactIngress}

// side is one filter hook of a device with the qdisc tree that belongs to it: of
// the device itself at egress, of an IFB at ingress.
type side struct {
	program ebpf.ProgramID // 0 if the hook has none of ours
	maps    map[string]*ebpf.Map
	record  *classifier.Record
	blocked []string // what is not ours and in the way, in words
	qdisc   netlink.Link
	tree    tree
}

// tree is an HTB tree as the kernel has it.
type tree struct {
	present bool
	classes map[uint16]htbClass // by minor number
	leaves  map[uint16]leaf     // by the class's minor number
}

type htbClass struct {
	parent uint16
	htb    nl.HTBClass
	stats  nl.Stats
}

type leaf struct {
	handle nl.Handle
	kind   string
	queue  nl.Leaf
	known  bool // a kind that we make
	stats  nl.Stats
}

func (k *kernel) close() {
	for _, s := range k.sides {
		classifier.Close(s.maps)
	}
}

// observe reads a device. The result holds open maps: close it.
func observe(c *nl.Conn, name string) (*kernel, error) {
	dev, err := netlink.LinkByName(name)
	if err != nil {
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil, fmt.Errorf("device %s: %w", name, shaper.ErrNoDevice)
		}
		return nil, fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	k := &kernel{dev: dev}
	if err := k.read(c); err != nil {
		k.close()
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return k, nil
}

func (k *kernel) read(c *nl.Conn) error {
	index := k.dev.Attrs().Index
	// The kernel lists every device's whatever is asked, so it is asked once.
	all, err := c.Objects("qdiscs", unix.RTM_GETQDISC, nl.TC{})
	if err != nil {
		return err
	}
	for _, q := range all {
		switch {
		case q.Ifindex != index:
		case q.Parent == nl.Root:
			k.root = q
			if q.Handle.Major() != 0 && (q.Handle.Major() != major || q.Kind != "htb") {
				k.sides[egress].blocked = append(k.sides[egress].blocked, fmt.Sprintf("root qdisc %s %x:", q.Kind, q.Handle.Major()))
			}
		case q.Parent == nl.Clsact && q.Kind == "clsact":
			k.clsact = true
		case q.Parent == nl.Clsact:
			what := fmt.Sprintf("qdisc %s", q.Kind)
			k.sides[egress].blocked = append(k.sides[egress].blocked, what)
			k.sides[ingress].blocked = append(k.sides[ingress].blocked, what)
		}
	}
	if k.clsact {
		for i := range k.sides {
			if err := k.readHook(c, i); err != nil {
				return err
			}
		}
	}
	k.sides[egress].qdisc = k.dev
	if k.root.Handle.Major() == major && k.root.Kind == "htb" {
		if k.sides[egress].tree, err = readTree(c, index, all); err != nil {
			return err
		}
	}
	return k.readIFB(c, all)
}

// readHook finds our filter and the others'.
func (k *kernel) readHook(c *nl.Conn, i int) error {
	filters, err := c.Objects("filters", unix.RTM_GETTFILTER, nl.TC{Ifindex: k.dev.Attrs().Index, Parent: hooks[i]})
	if err != nil {
		return err
	}
	s := &k.sides[i]
	for _, f := range filters {
		if f.Handle == 0 {
			continue // the head of a chain, not a filter
		}
		name, id := f.BPFFilter()
		if f.Kind == "bpf" && f.Pref() == filterPref && name == filterName {
			s.program = ebpf.ProgramID(id)
			continue
		}
		what := fmt.Sprintf("%s filter %s pref %d", [2]string{"egress", "ingress"}[i], f.Kind, f.Pref())
		if name != "" {
			what += " (" + name + ")"
		}
		// A redirect ends the chain, so that no other filter may stand at ingress;
		// at egress the later ones still run.
		if i == ingress || f.Pref() <= filterPref {
			s.blocked = append(s.blocked, what)
		} else {
			k.foreign = append(k.foreign, what)
		}
	}
	if s.program == 0 {
		return nil
	}
	if s.maps, err = classifier.Maps(s.program); err != nil {
		return err
	}
	r, err := classifier.ReadRecord(s.maps)
	switch {
	case err == nil:
		s.record = &r
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return nil
}

// ifbName is the IFB of a device; a device's index is never used twice in a
// network namespace until it wraps.
func ifbName(index int) string { return fmt.Sprintf("hgi%d", index) }

// ifbAlias marks an IFB as ours.
func ifbAlias(dev string) string { return "headgate ingress of " + dev }

func (k *kernel) readIFB(c *nl.Conn, all []nl.Object) error {
	name := ifbName(k.dev.Attrs().Index)
	ifb, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	if ifb.Type() != "ifb" {
		k.sides[ingress].blocked = append(k.sides[ingress].blocked, fmt.Sprintf("device %s, a %s", name, ifb.Type()))
		return nil
	}
	k.sides[ingress].qdisc = ifb
	k.sides[ingress].tree, err = readTree(c, ifb.Attrs().Index, all)
	return err
}

func readTree(c *nl.Conn, index int, all []nl.Object) (tree, error) {
	t := tree{classes: map[uint16]htbClass{}, leaves: map[uint16]leaf{}}
	for _, q := range all {
		if q.Ifindex != index {
			continue
		}
		if q.Parent == nl.Root {
			t.present = q.Handle.Major() == major && q.Kind == "htb"
		}
		if q.Parent.Major() == major {
			l, known := q.Leaf()
			t.leaves[q.Parent.Minor()] = leaf{q.Handle, q.Kind, l, known, q.Stats}
		}
	}
	if !t.present {
		return tree{}, nil
	}
	objects, err := c.Objects("classes", unix.RTM_GETTCLASS, nl.TC{Ifindex: index})
	if err != nil {
		return tree{}, err
	}
	for _, o := range objects {
		if o.Handle.Major() != major {
			continue // a TBF leaf's own class
		}
		h, err := o.HTBClass()
		if err != nil {
			return tree{}, fmt.Errorf("cannot read HTB class %v: %w", o.Handle, err)
		}
		parent := o.Parent.Minor()
		if o.Parent == nl.Root {
			parent = 0
		}
		t.classes[o.Handle.Minor()] = htbClass{parent, h, o.Stats}
	}
	return t, nil
}
