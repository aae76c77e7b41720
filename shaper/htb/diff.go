package htb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/group"
	"headgate/internal/cgroup2"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
	"headgate/unit"
)

// step is one change to a qdisc tree, in words and as requests.
type step struct {
	change shaper.Change
	add    func(b *nl.Batch, ifindex int)
}

// want is what one side should be; a nil tree is nothing.
type want struct {
	tree    *group.Tree
	in      bool
	record  classifier.Record
	classes []class
}

// desire is what the plan means for each side of the device.
func desire(k *kernel, p shaper.Plan) ([2]want, error) {
	trees := [2]*group.Tree{egress: p.Out, ingress: p.In}
	if p.Perspective == group.Guest {
		trees = [2]*group.Tree{egress: p.In, ingress: p.Out}
	}
	var out [2]want
	for i := range out {
		w := want{tree: trees[i], in: (i == ingress) == (p.Perspective != group.Guest)}
		if w.tree != nil {
			var err error
			if w, err = w.fill(k, k.sides[i], p); err != nil {
				return out, err
			}
		}
		out[i] = w
	}
	return out, nil
}

func (w want) fill(k *kernel, s side, p shaper.Plan) (want, error) {
	old := classifier.Record{}
	if s.record != nil {
		old = *s.record
	}
	ids, err := classIDs(*w.tree, old.Classes)
	if err != nil {
		return w, err
	}
	cgroups := map[string]uint64{}
	for _, r := range w.tree.Rules {
		if path := r.Selector.Cgroup; path != "" {
			if cgroups[path], err = cgroup2.ID(path); err != nil {
				return w, err
			}
		}
	}
	w.record = classifier.Record{
		Engine: group.HTB, Build: build(_ClassifierBytes), Plan: p, In: w.in, Classes: ids, Cgroups: cgroups,
		Clsact: !k.clsact || k.ownsClsact(), Token: old.Token, Generation: old.Generation, IFB: old.IFB,
		LinkHeader: linkHeader(k.dev),
	}
	w.classes = classes(*w.tree, w.minor, facts{mtu: k.dev.Attrs().MTU, overhead: p.Overhead})
	return w, nil
}

func (w want) minor(node int) uint16 { return w.record.Classes[idKey(w.tree.Nodes[node])] }

func (w want) direction() string {
	if w.in {
		return "in"
	}
	return "out"
}

func (k *kernel) ownsClsact() bool {
	for _, s := range k.sides {
		if s.record != nil && s.record.Clsact {
			return true
		}
	}
	return false
}

// blockers are what is not ours and in the way of the plan.
func blockers(k *kernel, want [2]want) error {
	var what []string
	for i, w := range want {
		if w.tree != nil {
			what = append(what, k.sides[i].blocked...)
		}
	}
	if len(what) == 0 {
		return nil
	}
	slices.Sort(what)
	return fmt.Errorf("device %s %w: %s; remove it, or leave this device to it",
		k.dev.Attrs().Name, shaper.ErrForeign, strings.Join(slices.Compact(what), ", "))
}

// treeSteps leads from the tree that is there to the one that should be. Removals
// come apart, because they wait until no packet is sent to what they remove.
func treeSteps(w want, have tree) (set, remove []step) {
	dir := w.direction()
	if !have.present {
		set = append(set, step{
			shaper.Change{Verb: "add", Object: dir + " limit", Detail: w.tree.Limit.String()},
			func(b *nl.Batch, ifindex int) { b.AddHTB(ifindex, nl.MakeHandle(major, 0), controlMinor) },
		})
	}
	wanted := make(map[uint16]bool, len(w.classes))
	for _, c := range w.classes {
		wanted[c.minor] = true
		set = append(set, classSteps(dir, c, have)...)
	}
	for _, minor := range obsolete(have, wanted) {
		remove = append(remove, step{
			shaper.Change{Verb: "remove", Object: fmt.Sprintf("%s class %v", dir, classHandle(minor))},
			func(b *nl.Batch, ifindex int) { b.DeleteClass(ifindex, classHandle(minor)) },
		})
	}
	return set, remove
}

func classSteps(dir string, c class, have tree) []step {
	var out []step
	object := fmt.Sprintf("%s group %s", dir, c.path)
	if c.minor == rootMinor {
		object = dir + " limit"
	}
	old, exists := have.classes[c.minor]
	if !exists || !sameClass(c, old) {
		change := shaper.Change{Verb: "add", Object: object, Detail: describe(c.htb)}
		if exists {
			change.Verb, change.Detail = "change", difference(old.htb, c.htb)
		}
		parent := nl.MakeHandle(major, 0)
		if c.minor != rootMinor {
			parent = classHandle(c.parent)
		}
		if c.minor != rootMinor || exists {
			out = append(out, step{change, nil})
		} else {
			out = append(out, step{}) // the limit was named with the tree
		}
		out[len(out)-1].add = func(b *nl.Batch, ifindex int) { b.SetHTBClass(ifindex, classHandle(c.minor), parent, c.htb) }
	}
	if q, ok := have.leaves[c.minor]; c.leaf && (!ok || !q.known || q.handle != leafHandle(c.minor) || q.queue != c.queue) {
		change := shaper.Change{}
		if exists && ok {
			change = shaper.Change{Verb: "change", Object: object, Detail: fmt.Sprintf("queue %v -> %v", unit.Bytes(q.queue.Limit), unit.Bytes(c.queue.Limit))}
		}
		out = append(out, step{change, func(b *nl.Batch, ifindex int) {
			b.SetLeaf(ifindex, leafHandle(c.minor), classHandle(c.minor), c.queue)
		}})
	}
	return out
}

func sameClass(c class, old htbClass) bool {
	a, b := c.htb, old.htb
	if !c.leaf {
		a.Quantum, b.Quantum = 0, 0 // HTB ignores what it is told for a parent
		a.Prio, b.Prio = 0, 0
	}
	return a == b
}

func describe(c nl.HTBClass) string {
	return fmt.Sprintf("%v guaranteed, up to %v", unit.Rate(c.Rate*8), unit.Rate(c.Ceil*8))
}

func difference(old, now nl.HTBClass) string {
	var parts []string
	note := func(what string, a, b any) {
		if a != b {
			parts = append(parts, fmt.Sprintf("%s %v -> %v", what, a, b))
		}
	}
	note("guaranteed", unit.Rate(old.Rate*8), unit.Rate(now.Rate*8))
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

// sameRecord tells whether a program was made for just this.
func sameRecord(a, b classifier.Record) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return errors.Join(err1, err2) == nil && bytes.Equal(x, y)
}

// sameRules tells whether packets are classified alike under both.
func sameRules(a, b *classifier.Record) bool {
	if a == nil || b == nil {
		return false
	}
	x, err1 := json.Marshal([]any{a.Tree().Rules, a.Tree().Default, a.LinkHeader})
	y, err2 := json.Marshal([]any{b.Tree().Rules, b.Tree().Default, b.LinkHeader})
	return errors.Join(err1, err2) == nil && bytes.Equal(x, y) &&
		maps.Equal(a.Classes, b.Classes) && maps.Equal(a.Cgroups, b.Cgroups)
}
