package htb

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
)

const (
	egress  = attach.Egress
	ingress = attach.Ingress
)

// kernel is the actual state of a device, Headgate's objects and foreign ones.
type kernel struct {
	*attach.Device
	conn  *nl.Conn
	root  nl.Object // the device's root qdisc
	sides [2]side   // by attach.Egress, attach.Ingress
}

// side is one filter hook of a device with its qdisc tree: on the device itself for egress, on
// an IFB for ingress.
type side struct {
	*attach.Side
	blocked []string // descriptions of conflicting foreign objects
	qdisc   netlink.Link
	tree    tree
}

// tree is the actual state of an HTB tree.
type tree struct {
	present  bool
	filtered bool                 // the filter that reads packet classes exists (class.c)
	classes  map[uint16]htbClass  // by minor number
	leaves   map[uint16]foundLeaf // by the minor number of the class
	inner    map[uint16]foundInner
	at       time.Time // when the classes were read
}

type htbClass struct {
	parent uint16 // minor of the parent group, or of the limit
	handle nl.Handle
	htb    nl.HTBClass
	stats  nl.Stats
}

// foundInner is the HTB of a parent group.
type foundInner struct {
	parent   nl.Handle // the class that contains it
	filtered bool      // the filter that reads packet classes exists
	lends    nl.HTBClass
}

// with reads the state of a device, calls do, and closes the maps.
func with(dev string, do func(*nl.Conn, *kernel) error) error {
	return attach.With(dev, group.HTB, func(c *nl.Conn, d *attach.Device) error { return withDevice(c, d, do) })
}

func withDevice(c *nl.Conn, d *attach.Device, do func(*nl.Conn, *kernel) error) error {
	k := &kernel{Device: d, conn: c}
	if err := k.read(c); err != nil {
		return fmt.Errorf("device %s: %w", d.Name(), err)
	}
	return do(c, k)
}

func (k *kernel) read(c *nl.Conn) (err error) {
	for i := range k.sides {
		s := &k.Sides[i]
		k.sides[i] = side{Side: s, blocked: slices.Concat(k.Blocked, s.Before)}
	}
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

// isOurs reports whether this engine created a root qdisc.
func isOurs(q nl.Object) bool { return q.Handle.Major() == major && q.Kind == "htb" }

// readBehind adds the qdiscs below the leaves' own qdiscs.
func (t tree) readBehind(index int, all []nl.Object) {
	class := make(map[nl.Handle]uint16, len(t.leaves))
	for minor, l := range t.leaves {
		class[l.handle] = minor
	}
	for _, q := range all {
		minor, ok := class[nl.MakeHandle(q.Parent.Major(), 0)]
		if q.Ifindex != index || !ok {
			continue
		}
		l := t.leaves[minor]
		l.readChild(q)
		t.leaves[minor] = l
	}
}

func readTree(c *nl.Conn, index int, all []nl.Object) (t tree, err error) {
	t = tree{classes: map[uint16]htbClass{}, leaves: map[uint16]foundLeaf{}, inner: map[uint16]foundInner{}}
	for _, q := range all {
		if q.Ifindex != index {
			continue
		}
		if q.Parent == nl.Root {
			t.present = isOurs(q)
			continue
		}
		if _, ok := ofHTB(q.Parent.Major()); !ok {
			continue
		}
		if minor, ok := ofHTB(q.Handle.Major()); ok && minor == q.Parent.Minor() && q.Kind == "htb" {
			t.inner[minor] = foundInner{parent: q.Parent}
			continue
		}
		t.leaves[q.Parent.Minor()] = readLeaf(q)
	}
	if !t.present {
		return tree{}, nil
	}
	t.readBehind(index, all)
	if t.filtered, err = readClassFilter(c, index, htbOf(rootMinor)); err != nil {
		return tree{}, err
	}
	for minor, in := range t.inner {
		if in.filtered, err = readClassFilter(c, index, htbOf(minor)); err != nil {
			return tree{}, err
		}
		t.inner[minor] = in
	}
	began := time.Now()
	objects, err := c.Objects("classes", unix.RTM_GETTCLASS, nl.TC{Ifindex: index})
	if err != nil {
		return tree{}, err
	}
	t.at = began.Add(time.Since(began) / 2)
	for _, o := range objects {
		in, ok := ofHTB(o.Handle.Major())
		if _, inner := t.inner[in]; !ok || in != rootMinor && !inner {
			continue // the class of a TBF leaf
		}
		h, err := o.HTBClass()
		if err != nil {
			return tree{}, fmt.Errorf("cannot read HTB class %v: %w", o.Handle, err)
		}
		minor, parent := o.Handle.Minor(), in
		switch {
		case o.Handle == topClass(rootMinor):
			parent = 0
		case o.Handle == topClass(in):
			h.Quantum, h.Prio = 0, 0 // not used by the top class
			inner := t.inner[in]
			inner.lends = h
			t.inner[in] = inner
			continue
		case in == rootMinor:
			parent = o.Parent.Minor() // earlier versions had nested groups in the same HTB
		}
		t.classes[minor] = htbClass{parent, o.Handle, h, o.Stats}
	}
	return t, nil
}

// reusableIDs returns the class IDs that groups keep. Earlier Headgate versions had nested groups in
// one HTB. A class cannot move to another HTB, so such groups get new IDs.
func (t tree) reusableIDs(want group.Tree, ids map[string]uint16) map[string]uint16 {
	if !slices.ContainsFunc(slices.Collect(maps.Values(t.classes)), htbClass.nestedInRootHTB) {
		return ids
	}
	ids = maps.Clone(ids)
	for _, n := range want.Nodes {
		key := classifier.ClassKey(n)
		if id, ok := ids[key]; ok && (n.Parent >= 0 || !n.Leaf) {
			delete(ids, key)
			ids["/"+key] = id // belongs to no group, but is in use until the transition is done
		}
	}
	return ids
}

// nestedInRootHTB reports whether the class is that of a nested group in the device's HTB.
func (c htbClass) nestedInRootHTB() bool {
	return c.handle.Major() == major && c.parent != 0 && c.parent != rootMinor
}
