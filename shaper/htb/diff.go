package htb

import (
	"cmp"
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

// want is what one side should be; a nil Tree is nothing.
type want struct {
	attach.Direction
	record  classifier.Record
	classes []class
}

// desire is what the plan means for each side of the device.
func desire(k *kernel, p shaper.Plan) (out [2]want, err error) {
	for i, d := range attach.Directions(p) {
		out[i] = want{Direction: d}
		if d.Tree == nil {
			continue
		}
		if out[i], err = out[i].fill(k, k.sides[i], p); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (w want) fill(k *kernel, s side, p shaper.Plan) (want, error) {
	old := classifier.Record{}
	if s.Record != nil {
		old = *s.Record
	}
	ids, err := classifier.ClassIDs(*w.Tree, old.Classes, firstMinor, lastMinor)
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
		Engine: group.HTB, Build: classifier.Build(_ClassifierBytes), Plan: p, In: w.In, Classes: ids, Cgroups: cgroups,
		Clsact: k.NeedsClsact(), Token: old.Token, Generation: old.Generation, IFB: old.IFB,
		LinkHeader: linkHeader,
	}
	w.classes = classes(*w.Tree, w.minor, facts{mtu: k.Link.Attrs().MTU, overhead: p.Overhead, flowQueues: k.flowQueues()})
	return w, nil
}

func (w want) minor(node int) uint16 { return w.record.Class(w.Tree.Nodes[node]) }

// blockers are what is not ours and in the way of the plan.
func blockers(k *kernel, want [2]want) error {
	var what []string
	for i, w := range want {
		if w.Tree != nil {
			what = append(what, k.sides[i].blocked...)
		}
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
			func(b *nl.Batch, ifindex int) { b.AddHTB(ifindex, nl.MakeHandle(major, 0), controlMinor) },
		})
	}
	wanted := make(map[uint16]bool, len(w.classes))
	// All classes, then all queues: for each class that is made the kernel walks
	// those that are there (net/sched/sch_api.c, tc_bind_tclass), which is faster
	// while they lie together in memory.
	var leaves []step
	for _, c := range w.classes {
		wanted[c.minor] = true
		object := dir + " group " + c.path
		if c.minor == rootMinor {
			object = dir + " limit"
		}
		if s, ok := classStep(object, c, have); ok {
			set = append(set, s)
		}
		if s, ok := leafStep(object, c, have); ok {
			leaves = append(leaves, s)
		}
	}
	set = append(set, leaves...)
	for _, minor := range obsolete(have, wanted) {
		remove = append(remove, step{
			func() shaper.Change {
				return shaper.Change{Verb: "remove", Object: fmt.Sprintf("%s class %v", dir, classHandle(minor))}
			},
			func(b *nl.Batch, ifindex int) { b.DeleteClass(ifindex, classHandle(minor)) },
		})
	}
	return set, remove
}

func classStep(object string, c class, have tree) (step, bool) {
	old, exists := have.classes[c.minor]
	if exists && sameClass(c, old) {
		return step{}, false
	}
	parent := nl.MakeHandle(major, 0)
	if c.minor != rootMinor {
		parent = classHandle(c.parent)
	}
	s := step{add: func(b *nl.Batch, ifindex int) { b.SetHTBClass(ifindex, classHandle(c.minor), parent, c.htb) }}
	switch {
	case exists:
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: difference(old.htb, c)}
		}
	case c.minor != rootMinor: // the limit was named with the tree
		s.change = func() shaper.Change { return shaper.Change{Verb: "add", Object: object, Detail: describe(c.htb)} }
	}
	return s, true
}

func sameClass(c class, old htbClass) bool { return c.heeded(c.htb) == c.heeded(old.htb) }

// heeded is what HTB heeds of what a class like c is told: no turns and priorities of
// parents.
func (c class) heeded(h nl.HTBClass) nl.HTBClass {
	if !c.leaf {
		h.Quantum, h.Prio = 0, 0
	}
	return h
}

func describe(c nl.HTBClass) string {
	return fmt.Sprintf("%s guaranteed, up to %v", guaranteed(c.Rate), unit.Rate(c.Ceil*8))
}

// guaranteed is a class's own rate in words. HTB knows no rate of 0, so that 1 byte
// a second stands for it (builder.class).
func guaranteed(rate uint64) string {
	if rate <= 1 {
		return "nothing"
	}
	return unit.Rate(rate * 8).String()
}

func difference(before nl.HTBClass, c class) string {
	old, now := c.heeded(before), c.heeded(c.htb)
	var parts []string
	note := func(what string, a, b any) {
		if a != b {
			parts = append(parts, fmt.Sprintf("%s %v -> %v", what, a, b))
		}
	}
	note("guaranteed", guaranteed(old.Rate), guaranteed(now.Rate))
	note("ceiling", unit.Rate(old.Ceil*8), unit.Rate(now.Ceil*8))
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
func obsolete(have tree, wanted map[uint16]bool) []uint16 {
	depth := func(minor uint16) (d int) {
		for c, ok := have.classes[minor]; ok && c.parent != 0 && d < 16; c, ok = have.classes[c.parent] {
			d++
		}
		return d
	}
	var out []uint16
	for minor := range have.classes {
		if !wanted[minor] {
			out = append(out, minor)
		}
	}
	slices.SortFunc(out, func(a, b uint16) int { return cmp.Or(depth(b)-depth(a), int(a)-int(b)) })
	return out
}
