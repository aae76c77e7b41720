package htb

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper/attach"
)

const (
	egress  = attach.Egress
	ingress = attach.Ingress
)

// kernel is what a device has, ours and not.
type kernel struct {
	*attach.Device
	conn  *nl.Conn
	root  nl.Object // the device's root qdisc
	sides [2]side   // by attach.Egress, attach.Ingress
}

// side is one filter hook of a device with the qdisc tree that belongs to it: of
// the device itself at egress, of an IFB at ingress.
type side struct {
	*attach.Side
	blocked []string // what is not ours and in the way, in words
	qdisc   netlink.Link
	tree    tree
}

// tree is an HTB tree as the kernel has it.
type tree struct {
	present bool
	classes map[uint16]htbClass  // by minor number
	leaves  map[uint16]foundLeaf // by the class's minor number
}

type htbClass struct {
	parent uint16
	htb    nl.HTBClass
	stats  nl.Stats
}

// with reads a device and closes what that opened.
func with(dev string, do func(*nl.Conn, *kernel) error) error {
	return attach.With(dev, group.HTB, func(c *nl.Conn, d *attach.Device) error {
		k := &kernel{Device: d, conn: c}
		if err := k.read(c); err != nil {
			return fmt.Errorf("device %s: %w", dev, err)
		}
		return do(c, k)
	})
}

func (k *kernel) read(c *nl.Conn) (err error) {
	for i := range k.sides {
		s := &k.Sides[i]
		k.sides[i] = side{Side: s, blocked: slices.Concat(k.Blocked, s.Before)}
	}
	// A redirect ends the chain, so that no other filter may stand at ingress; at
	// egress the later ones still run.
	k.sides[ingress].blocked = append(k.sides[ingress].blocked, k.Sides[ingress].After...)
	for _, q := range k.Qdiscs {
		if q.Ifindex != k.Index() || q.Parent != nl.Root {
			continue
		}
		k.root = q
		if q.Handle.Major() != 0 && !isOurs(q) {
			k.sides[egress].blocked = append(k.sides[egress].blocked, fmt.Sprintf("root qdisc %s %x:", q.Kind, q.Handle.Major()))
		}
	}
	k.sides[egress].qdisc = k.Link
	if isOurs(k.root) {
		if k.sides[egress].tree, err = readTree(c, k.Index(), k.Qdiscs); err != nil {
			return err
		}
	}
	return k.readIFB(c)
}

// isOurs knows a root qdisc that this engine made.
func isOurs(q nl.Object) bool { return q.Handle.Major() == major && q.Kind == "htb" }

// readBehind adds to the leaves what is behind their own qdiscs.
func (t tree) readBehind(index int, all []nl.Object) {
	class := make(map[nl.Handle]uint16, len(t.leaves))
	for minor, l := range t.leaves {
		class[l.handle] = minor
	}
	for _, q := range all {
		minor, ok := class[nl.MakeHandle(q.Parent.Major(), 0)]
		if q.Ifindex != index || q.Parent.Major() == major || !ok {
			continue
		}
		l := t.leaves[minor]
		l.readChild(q)
		t.leaves[minor] = l
	}
}

func readTree(c *nl.Conn, index int, all []nl.Object) (tree, error) {
	t := tree{classes: map[uint16]htbClass{}, leaves: map[uint16]foundLeaf{}}
	for _, q := range all {
		if q.Ifindex != index {
			continue
		}
		if q.Parent == nl.Root {
			t.present = isOurs(q)
		}
		if q.Parent.Major() == major {
			t.leaves[q.Parent.Minor()] = readLeaf(q)
		}
	}
	if !t.present {
		return tree{}, nil
	}
	t.readBehind(index, all)
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
