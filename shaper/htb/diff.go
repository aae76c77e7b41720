package htb

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// step is one change to a qdisc tree, as a description and as requests.
type step struct {
	change func() shaper.Change // nil if another change includes it
	// derived is set if the change follows from others, and has a reason of its own only if there are none: another
	// program, or version, has changed the object.
	derived bool
	add     func(b *nl.Batch, ifindex int)
}

// options are the constants of the classifier that do not follow from the plan alone; they are
// the engine's own part of a record.
type options struct {
	BoundWait uint8  // the groups whose packets are dropped if they wait too long (bpf/bound.h)
	MaxFrame  uint32 // the largest frame that all leaves pass; 0: any
}

// Values of BoundWait: clients have FIFOs where groups have fq_codel.
const (
	boundAll     = 1
	boundClients = 2
)

func (o options) encode() []byte {
	b, _ := binary.Append(nil, binary.NativeEndian, o) // of fixed size
	return b
}

// desiredSide is the desired state of one side; a nil Tree means no shaping.
type desiredSide struct {
	attach.Direction
	record  classifier.Record
	options options
	classes []class
	was     map[uint16]group.Node // the groups in force, by class
	filter  bool                  // the HTB qdisc has a filter that reads packet classes
}

// desiredSides returns the desired state of each side of the device.
func desiredSides(k *kernel, p shaper.Plan) (out [2]desiredSide, err error) {
	for i, d := range attach.Directions(p) {
		out[i] = desiredSide{Direction: d}
		if d.Tree == nil {
			continue
		}
		if out[i], err = out[i].fill(k, i, p); err != nil {
			return out, err
		}
		if i == ingress {
			if out[i].record.Forward, err = k.forwards(); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (w desiredSide) fill(k *kernel, i int, p shaper.Plan) (desiredSide, error) {
	s := k.sides[i]
	old := classifier.Record{}
	if s.Record != nil {
		old = *s.Record
	}
	ids, err := classifier.ClassIDs(*w.Tree, s.tree.reusableIDs(*w.Tree, old.Classes), firstMinor, lastMinor)
	if err != nil {
		return w, err
	}
	places, err := classifier.AllocateClientRanges(*w.Tree, old.Places)
	if err != nil {
		return w, err
	}
	cgroups, err := classifier.FindCgroups(*w.Tree)
	if err != nil {
		return w, err
	}
	linkHeader, err := k.LinkHeader()
	if err != nil {
		return w, err
	}
	w.record = classifier.Record{
		Engine: group.HTB, Build: classifier.Build(_ClassifierBytes), Plan: p, In: w.In, Classes: ids, Places: places, Cgroups: cgroups,
		Clsact: k.NeedsClsact(), Token: old.Token, Generation: old.Generation, IFB: old.IFB,
		LinkHeader: linkHeader,
	}
	w.filter, w.was = true, nodes(s.Record)
	f := k.linkFacts(i, p)
	b := newBuilder(*w.Tree, f)
	b.limits = s.tree.limits(*w.Tree, w.minor)
	w.classes = b.classes(w.minor, places)
	switch {
	case !f.flowQueues:
		w.options.BoundWait = boundAll
	case len(places) > 0:
		w.options.BoundWait = boundClients
	}
	if splits(w.classes) {
		w.options.MaxFrame = uint32(f.frame())
	}
	w.record.Options = w.options.encode()
	w.record.Sized = k.sized(i, p, b.sizeFor(i))
	return w, nil
}

// linkFacts returns the properties of a side that its tree depends on.
func (k *kernel) linkFacts(i int, p shaper.Plan) linkFacts {
	return linkFacts{mtu: k.Link.Attrs().MTU, overhead: p.Overhead, flowQueues: k.flowQueues(), near: i == ingress || p.Perspective == group.Guest, byAction: i == ingress && k.byAction()}
}

func (w desiredSide) minor(node int) uint16 { return w.record.Class(w.Tree.Nodes[node]) }

// nodes returns the groups of a record by class, and the limit as one of them.
func nodes(r *classifier.Record) map[uint16]group.Node {
	out := map[uint16]group.Node{}
	if r != nil {
		t := r.Tree()
		out[rootMinor] = group.Node{Ceiling: t.Limit}
		for _, n := range t.Nodes {
			out[r.Class(n)] = n
			if p, ok := r.Places[n.Path]; ok {
				out[p.First] = group.Node{Path: n.Path, Guarantee: n.Clients.Guarantee, Ceiling: n.Clients.Ceiling}
			}
		}
	}
	return out
}

// blockers returns an error for the foreign objects that conflict with the plan.
func blockers(k *kernel, want [2]desiredSide) error {
	var what []string
	for i, w := range want {
		if w.Tree != nil {
			what = append(what, k.sides[i].blocked...)
		}
	}
	if w := want[ingress]; w.Tree != nil {
		around, err := k.ingressConflicts(w.record.Forward)
		if err != nil {
			return err
		}
		what = append(what, around...)
	}
	return k.Foreign(what)
}

// treeSteps returns the steps from the actual to the desired tree. Removals are separate,
// because they must wait until no packet is sent to the removed objects.
func treeSteps(w desiredSide, have tree) (set, remove []step) {
	dir := w.String()
	if !have.present {
		set = append(set, step{
			change: func() shaper.Change {
				return shaper.Change{Verb: "add", Object: dir + " limit", Detail: w.Tree.Limit.String()}
			},
			add: func(b *nl.Batch, ifindex int) { b.AddHTB(ifindex, nl.MakeHandle(major, 0), nl.Root, controlMinor) },
		})
	}
	if s, ok := classFilterStep(dir+" limit", w, have); ok {
		set = append(set, s)
	}
	wanted := make(map[uint16]nl.Handle, len(w.classes))
	// All classes, then all queues: for each new class the kernel walks the existing ones
	// (net/sched/sch_api.c, tc_bind_tclass), which is faster while they are adjacent in memory.
	var leaves []step
	for _, c := range w.classes {
		wanted[c.minor] = c.handle()
		object := c.object(dir)
		if s, ok := classStep(object, c, w.was, have); ok {
			set = append(set, s)
		}
		if s, ok := innerStep(object, c, have); ok {
			set = append(set, s)
		}
		if s, ok := leafStep(object, c, have); ok {
			leaves = append(leaves, s)
		}
	}
	set = append(set, leaves...)
	for _, minor := range obsolete(have, wanted) {
		handle := have.classes[minor].handle
		if isClient(minor) && removedWithGroup(handle, wanted) {
			continue
		}
		s := step{add: func(b *nl.Batch, ifindex int) { b.DeleteClass(ifindex, handle) }}
		_, beside := wanted[minor&^largeFrames]
		if minor&largeFrames == 0 && !isClient(minor) || minor&largeFrames != 0 && beside { // otherwise the change of its group includes it
			object, derived := w.removed(minor, handle, wanted)
			s.derived = derived
			s.change = func() shaper.Change { return shaper.Change{Verb: "remove", Object: object} }
		}
		remove = append(remove, s)
	}
	return set, remove
}

// removed names a class that is removed, and reports whether it is one that users do not configure.
func (w desiredSide) removed(minor uint16, handle nl.Handle, wanted map[uint16]nl.Handle) (object string, derived bool) {
	c := class{minor: minor, large: minor&largeFrames != 0, path: w.was[minor&^largeFrames].Path}
	if !c.derived() && c.path == "" {
		return fmt.Sprintf("%v class %v", w, handle), false // not Headgate's
	}
	_, moves := wanted[minor]
	return c.object(w.String()), moves || c.derived()
}

func classStep(object string, c class, was map[uint16]group.Node, have tree) (step, bool) {
	old, exists := have.classes[c.minor]
	exists = exists && old.handle == c.handle()
	if exists && sameClass(c, old) {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) { b.SetHTBClass(ifindex, c.handle(), c.above(), c.htb) }}
	_, beside := have.classes[c.minor&^largeFrames]
	switch {
	case c.large && !beside: // the change of its group includes it
	case c.client > 1 || c.client == 1 && !exists: // the first client stands for all, and the group for a new client
	case exists:
		detail, derived := difference(old.htb, was[c.minor], c)
		s.derived = derived
		s.change = func() shaper.Change { return shaper.Change{Verb: "change", Object: object, Detail: detail} }
	case c.minor != rootMinor: // the change of the tree includes the limit
		s.derived = c.derived()
		s.change = func() shaper.Change { return shaper.Change{Verb: "add", Object: object, Detail: describe(c)} }
	}
	return s, true
}

func sameClass(c class, old htbClass) bool { return c.effective(c.htb) == c.effective(old.htb) }

// effective returns the parameters that HTB uses of a class like c: for the limit, quantum and
// priority are ignored.
func (c class) effective(h nl.HTBClass) nl.HTBClass {
	if c.minor == rootMinor {
		h.Quantum, h.Prio = 0, 0
	}
	return h
}

// innerStep returns the step that creates the HTB of a parent group. A qdisc in its place is
// removed with its packets.
func innerStep(object string, c class, have tree) (step, bool) {
	old := have.inner[c.minor]
	if c.inner == 0 || old.parent == c.handle() && old.filtered && old.lends == unlimitedClass {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) {
		own := htbOf(c.minor)
		if old.parent != c.handle() {
			b.AddHTB(ifindex, own, c.handle(), 0)
			old = foundInner{}
		}
		if old.lends != unlimitedClass {
			made := unlimitedClass
			made.Quantum = c.htb.Quantum // unused, but the kernel requires one
			b.SetHTBClass(ifindex, topClass(c.minor), own, made)
		}
		if !old.filtered {
			setClassFilter(b, ifindex, own, c.inner)
		}
	}}
	if _, made := have.classes[c.minor]; made { // otherwise the change of its class includes it
		s.derived = true
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: "inner HTB"}
		}
	}
	return s, true
}

func describe(c class) string {
	if n := c.clients; !n.IsZero() {
		return fmt.Sprintf("guarantee %v, ceiling %v; guarantee %v, ceiling %v for each of %d clients", amount(c.guarantee), amount(c.ceiling), amount(n.Guarantee), amount(n.Ceiling), n.Most)
	}
	return fmt.Sprintf("guarantee %v, ceiling %v", amount(c.guarantee), amount(c.ceiling))
}

func amount(r unit.Rate) string { return rounded.Amount(uint64(r)) }

// arrow describes the change of a rate, exactly if rounding would hide it.
func arrow(a, b unit.Rate) string {
	was, is := amount(a), amount(b)
	if was == is {
		was, is = a.String(), b.String()
	}
	return was + " -> " + is
}

// difference describes the changes of an existing class: those of the configuration, or if there are none, of what is
// derived from it.
func difference(before nl.HTBClass, was group.Node, c class) (text string, derived bool) {
	old, now := c.effective(before), c.effective(c.htb)
	var parts []string
	note := func(what string, differs bool, text string) {
		if differs {
			parts = append(parts, what+text)
		}
	}
	rate := func(what string, a, b unit.Rate) { note(what, a != b, arrow(a, b)) }
	number := func(what string, a, b any) { note(what, a != b, fmt.Sprintf("%v -> %v", a, b)) }
	switch {
	case c.minor == rootMinor:
		rate("", was.Ceiling, c.ceiling)
	case !c.derived() && was.Path != "":
		rate("guarantee ", was.Guarantee, c.guarantee)
		if !c.adjustable {
			rate("ceiling ", was.Ceiling, c.ceiling)
		}
		number("priority ", old.Prio, now.Prio)
		number("overhead ", old.Overhead, now.Overhead)
		number("minimum ", old.Minimum, now.Minimum)
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", "), false
	}
	rate("HTB rate ", unit.Rate(old.Rate*8), unit.Rate(now.Rate*8))
	rate("HTB ceiling ", unit.Rate(old.Ceil*8), unit.Rate(now.Ceil*8))
	number("quantum ", unit.Bytes(old.Quantum), unit.Bytes(now.Quantum))
	number("priority ", old.Prio, now.Prio)
	number("overhead ", old.Overhead, now.Overhead)
	number("minimum ", old.Minimum, now.Minimum)
	if len(parts) == 0 {
		return "burst", true
	}
	return strings.Join(parts, ", "), true
}

// obsolete lists the classes that are not desired, children before parents.
func obsolete(have tree, wanted map[uint16]nl.Handle) []uint16 {
	depth := func(minor uint16) (d int) {
		for c, ok := have.classes[minor]; ok && c.parent != 0 && d < 16; c, ok = have.classes[c.parent] {
			d++
		}
		return d
	}
	var out []uint16
	for minor := range have.classes {
		if handle, ok := wanted[minor]; !ok || handle != have.classes[minor].handle {
			out = append(out, minor)
		}
	}
	slices.SortFunc(out, func(a, b uint16) int { return cmp.Or(depth(b)-depth(a), int(a)-int(b)) })
	return out
}
