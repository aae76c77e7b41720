package htb

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
	"headgate/shaper/classifier"
	"headgate/unit"
)

// step is one change to a qdisc tree, in words and as requests.
type step struct {
	change func() shaper.Change // nil for what goes without saying
	add    func(b *nl.Batch, ifindex int)
}

// options are the constants of the classifier that depend on more than the plan; they
// are the engine's own part of a record.
type options struct {
	BoundWait uint8  // whose packets are dropped that wait too long (bpf/bound.h)
	FrameMost uint32 // the largest frame that all leaves pass; 0: any
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

// want is what one side should be; a nil Tree is nothing.
type want struct {
	attach.Direction
	record  classifier.Record
	options options
	classes []class
	was     map[uint16]group.Node // groups by class, as they are in force
	filter  bool                  // the HTB qdisc has a filter that reads packets' classes
}

// desire is what the plan means for each side of the device.
func desire(k *kernel, p shaper.Plan) (out [2]want, err error) {
	for i, d := range attach.Directions(p) {
		out[i] = want{Direction: d}
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

func (w want) fill(k *kernel, i int, p shaper.Plan) (want, error) {
	s := k.sides[i]
	old := classifier.Record{}
	if s.Record != nil {
		old = *s.Record
	}
	ids, err := classifier.ClassIDs(*w.Tree, s.tree.stay(*w.Tree, old.Classes), firstMinor, lastMinor)
	if err != nil {
		return w, err
	}
	places, err := classifier.PlacesOf(*w.Tree, old.Places)
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
	f := facts{mtu: k.Link.Attrs().MTU, overhead: p.Overhead, flowQueues: k.flowQueues(), near: i == ingress || p.Perspective == group.Guest, byAction: i == ingress && k.byAction()}
	b := newBuilder(*w.Tree, f)
	w.classes = b.classes(w.minor, places)
	switch {
	case !f.flowQueues:
		w.options.BoundWait = boundAll
	case len(places) > 0:
		w.options.BoundWait = boundClients
	}
	if splits(w.classes) {
		w.options.FrameMost = uint32(f.frame())
	}
	w.record.Options = w.options.encode()
	w.record.Sized = k.sized(i, p, b.sizeFor(i))
	return w, nil
}

func (w want) minor(node int) uint16 { return w.record.Class(w.Tree.Nodes[node]) }

// nodes are the groups of a record by class, and the limit as one.
func nodes(r *classifier.Record) map[uint16]group.Node {
	out := map[uint16]group.Node{}
	if r != nil {
		t := r.Tree()
		out[rootMinor] = group.Node{Ceiling: t.Limit}
		for _, n := range t.Nodes {
			out[r.Class(n)] = n
			if p, ok := r.Places[n.Path]; ok {
				out[p.First] = group.Node{Guarantee: n.Clients.Guarantee, Ceiling: n.Clients.Ceiling}
			}
		}
	}
	return out
}

// blockers are what is not ours and in the way of the plan.
func blockers(k *kernel, want [2]want) error {
	var what []string
	for i, w := range want {
		if w.Tree != nil {
			what = append(what, k.sides[i].blocked...)
		}
	}
	if w := want[ingress]; w.Tree != nil {
		around, err := k.onTheWayIn(w.record.Forward)
		if err != nil {
			return err
		}
		what = append(what, around...)
	}
	return k.Foreign(what)
}

// treeSteps leads from the tree that is there to the one that should be. Removals
// come apart, because they wait until no packet is sent to what they remove.
func treeSteps(w want, have tree) (set, remove []step) {
	dir := w.String()
	if !have.present {
		set = append(set, step{
			func() shaper.Change {
				return shaper.Change{Verb: "add", Object: dir + " limit", Detail: w.Tree.Limit.String()}
			},
			func(b *nl.Batch, ifindex int) { b.AddHTB(ifindex, nl.MakeHandle(major, 0), nl.Root, controlMinor) },
		})
	}
	if s, ok := classFilterStep(dir+" limit", w, have); ok {
		set = append(set, s)
	}
	wanted := make(map[uint16]nl.Handle, len(w.classes))
	// All classes, then all queues: for each class that is made the kernel walks
	// those that are there (net/sched/sch_api.c, tc_bind_tclass), which is faster
	// while they lie together in memory.
	var leaves []step
	for _, c := range w.classes {
		wanted[c.minor] = c.handle()
		object := dir + " group " + c.path
		if c.minor == rootMinor {
			object = dir + " limit"
		}
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
		if isClient(minor) && goesWith(handle, wanted) {
			continue
		}
		s := step{add: func(b *nl.Batch, ifindex int) { b.DeleteClass(ifindex, handle) }}
		_, beside := wanted[minor&^largeFrames]
		if minor&largeFrames == 0 && !isClient(minor) || minor&largeFrames != 0 && beside { // else its group is named
			s.change = func() shaper.Change {
				return shaper.Change{Verb: "remove", Object: fmt.Sprintf("%s class %v", dir, handle)}
			}
		}
		remove = append(remove, s)
	}
	return set, remove
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
	case c.large && !beside: // its group is named
	case c.client > 1 || c.client == 1 && !exists: // the first speaks for all, and its group for a new one
	case exists:
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: difference(old.htb, was[c.minor&^largeFrames], c)}
		}
	case c.minor != rootMinor: // the limit was named with the tree
		s.change = func() shaper.Change { return shaper.Change{Verb: "add", Object: object, Detail: describe(c)} }
	}
	return s, true
}

func sameClass(c class, old htbClass) bool { return c.heeded(c.htb) == c.heeded(old.htb) }

// heeded is what HTB heeds of what a class like c is told: of the limit's no turns and
// priorities.
func (c class) heeded(h nl.HTBClass) nl.HTBClass {
	if c.minor == rootMinor {
		h.Quantum, h.Prio = 0, 0
	}
	return h
}

// innerStep makes the HTB of a group that has groups. What was in its place before is
// taken away, with the packets in it.
func innerStep(object string, c class, have tree) (step, bool) {
	old := have.inner[c.minor]
	if c.inner == 0 || old.parent == c.handle() && old.filtered && old.lends == lends {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) {
		own := htbOf(c.minor)
		if old.parent != c.handle() {
			b.AddHTB(ifindex, own, c.handle(), 0)
			old = foundInner{}
		}
		if old.lends != lends {
			made := lends
			made.Quantum = c.htb.Quantum // it takes no turns, but the kernel wants one
			b.SetHTBClass(ifindex, lender(c.minor), own, made)
		}
		if !old.filtered {
			setClassFilter(b, ifindex, own, c.inner)
		}
	}}
	if _, made := have.classes[c.minor]; made { // else it was named with its class
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: "the HTB that divides it"}
		}
	}
	return s, true
}

func describe(c class) string {
	if n := c.clients; !n.IsZero() {
		return fmt.Sprintf("%s guaranteed, up to %v; %s guaranteed, up to %v, for each of %d clients", guaranteed(c.guarantee), c.ceiling, guaranteed(n.Guarantee), n.Ceiling, n.Most)
	}
	return fmt.Sprintf("%s guaranteed, up to %v", guaranteed(c.guarantee), c.ceiling)
}

func guaranteed(rate unit.Rate) string {
	if rate == 0 {
		return "nothing"
	}
	return rate.String()
}

// difference says what changes of a class that had a guarantee.
func difference(before nl.HTBClass, was group.Node, c class) string {
	old, now := c.heeded(before), c.heeded(c.htb)
	var parts []string
	note := func(what string, a, b any) {
		if a != b {
			parts = append(parts, fmt.Sprintf("%s %v -> %v", what, a, b))
		}
	}
	note("guaranteed", guaranteed(was.Guarantee), guaranteed(c.guarantee))
	if was.Guarantee == c.guarantee { // the sum of all has changed, or somebody has changed the class
		note("own rate", unit.Rate(old.Rate*8), unit.Rate(now.Rate*8))
	}
	note("ceiling", was.Ceiling, c.ceiling)
	if was.Ceiling == c.ceiling {
		note("own ceiling", unit.Rate(old.Ceil*8), unit.Rate(now.Ceil*8))
	}
	note("turn", unit.Bytes(old.Quantum), unit.Bytes(now.Quantum))
	note("priority", old.Prio, now.Prio)
	note("overhead", old.Overhead, now.Overhead)
	note("minimum", old.Minimum, now.Minimum)
	if len(parts) == 0 {
		return "burst"
	}
	return strings.Join(parts, ", ")
}

// obsolete lists the classes that nobody wants, children before parents.
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
