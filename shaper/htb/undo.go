package htb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
)

// previousState is the previous state of a device, kept until its transition has succeeded.
type previousState struct {
	*attach.Snapshot
	works      [2]bool // the side has a classifier whose target exists
	ifb        netlink.Link
	classTimes [2][]classTimes
	allow      [2][]classifier.Allowance
	assign     func() error // restores the assignments that the transition has deleted
}

func (m *transition) hold() (*previousState, error) {
	held, err := m.k.Snapshot()
	if err != nil {
		return nil, err
	}
	b := &previousState{Snapshot: held, ifb: m.k.sides[ingress].qdisc}
	for i, s := range m.k.sides {
		lost := i == ingress && (s.qdisc == nil || s.Record != nil && s.Record.IFB != s.qdisc.Attrs().Index)
		if b.works[i] = s.Program != 0 && !lost; !b.works[i] {
			held.Drop(i) // a classifier whose target is missing would lose packets
		}
		if m.sides[i].newClassTimes {
			if b.classTimes[i], err = classifier.ReadAll[classTimes](s.Maps[classTimesMap]); err != nil {
				held.Close()
				return nil, err
			}
			if m := s.Maps[classifier.Allowances]; m != nil {
				if b.allow[i], err = classifier.ReadAll[classifier.Allowance](m); err != nil {
					held.Close()
					return nil, err
				}
			}
		}
	}
	return b, nil
}

// undo rolls back a failed transition and returns an error that describes the state in force.
// It reads the present state, because any request of a batch may have failed while the others
// were executed.
func (m *transition) undo(cause error, old *previousState, made [2]*classifier.Program) error {
	dev := m.k.Name()
	err := with(dev, func(c *nl.Conn, now *kernel) error { return m.restore(c, now, old) })
	if errors.Is(err, shaper.ErrNoDevice) {
		return fmt.Errorf("%w (removed during the change)", err)
	}
	if err != nil {
		return fmt.Errorf("device %s: %w; cannot roll back: %w; %s: apply again, or run \"headgate clear --dev %s\"",
			dev, cause, err, m.inForce(made), dev)
	}
	for i, p := range made {
		if p != nil && p.Record.Token != m.k.sides[i].token() {
			forget(p.Record.Token)
		}
	}
	return fmt.Errorf("device %s was rolled back: %w", dev, cause)
}

// restore changes the present state now back to the previous state.
func (m *transition) restore(c *nl.Conn, now *kernel, old *previousState) error {
	var b nl.Batch
	var remove [2][]step
	for i := range m.k.sides {
		if was := m.k.settings(i); was != now.settings(i) {
			now.addSize(&b, i, was)
		}
		was, is := &m.k.sides[i], &now.sides[i]
		if !old.works[i] || !was.tree.present || is.qdisc == nil {
			continue
		}
		var set []step
		set, remove[i] = treeSteps(desiredSide{classes: was.tree.list(), filter: was.tree.filtered}, is.tree)
		for _, st := range set {
			st.add(&b, is.qdisc.Attrs().Index)
		}
	}
	old.Restore(&b, now.Device, func(side int, p *ebpf.Program) {
		ifb := 0
		if side == ingress && !m.k.sides[ingress].forwards() {
			ifb = old.ifb.Attrs().Index
		}
		now.attachFilter(&b, side, p, ifb)
	})
	for i := range m.k.sides {
		is := &now.sides[i]
		for _, st := range remove[i] {
			st.add(&b, is.qdisc.Attrs().Index)
		}
		if is.tree.present && !(old.works[i] && m.k.sides[i].tree.present) {
			b.DeleteQdisc(is.qdisc.Attrs().Index, nl.MakeHandle(major, 0), nl.Root)
		}
	}
	if err := c.Execute(&b); err != nil {
		return err
	}
	// The IFB can be removed only now that nothing sends packets to it.
	if old.ifb == nil {
		if err := now.removeIFB(); err != nil {
			return err
		}
	}
	return m.restoreMaps(old)
}

// restoreMaps restores the map contents of programs that stay.
func (m *transition) restoreMaps(old *previousState) error {
	for i := range m.sides {
		s := &m.k.sides[i]
		if m.sides[i].record {
			if _, err := s.Record.Rewrite(s.Maps); err != nil {
				return err
			}
		}
		if err := putClassTimes(s.Maps[classTimesMap], numbers(len(old.classTimes[i])), old.classTimes[i]); err != nil {
			return err
		}
		if err := classifier.PutAllowances(s.Maps[classifier.Allowances], numbers(len(old.allow[i])), old.allow[i]); err != nil {
			return err
		}
	}
	if old.assign == nil {
		return nil
	}
	return old.assign()
}

// numbers returns all minor numbers of a map with n entries.
func numbers(n int) []uint32 {
	minors := make([]uint32, n)
	for i := range minors {
		minors[i] = uint32(i)
	}
	return minors
}

// list returns the tree as classes, parents first, without queues that Headgate did not create.
func (t tree) list() (out []class) {
	minors := obsolete(t, nil)
	slices.Reverse(minors)
	level := map[uint16]int{}
	for _, minor := range minors {
		c, l := t.classes[minor], t.leaves[minor]
		level[minor] = level[c.parent] + 1
		was := class{minor: minor, parent: c.parent, leaf: l.known, large: minor&largeFrames != 0, htb: c.htb, queue: l.leaf}
		if _, inner := t.inner[minor]; inner {
			was.inner = level[minor] - 1 // the limit is the first level
		}
		out = append(out, was)
	}
	return out
}

// inForce describes the state of each direction after a transition that could be neither
// completed nor rolled back.
func (m *transition) inForce(made [2]*classifier.Program) string {
	var words []string
	err := with(m.k.Name(), func(_ *nl.Conn, now *kernel) error {
		for i := range now.sides {
			words = append(words, m.hasNow(i, &now.sides[i], made[i]))
		}
		return nil
	})
	if err != nil {
		return fmt.Sprintf("the state in force is unknown (%v)", err)
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}

func (m *transition) hasNow(i int, is *side, made *classifier.Program) string {
	was, dir := &m.k.sides[i], m.desired[i].String()
	differs := func(w desiredSide) bool { set, remove := treeSteps(w, is.tree); return len(set)+len(remove) > 0 }
	switch {
	case is.Program == 0 && !is.tree.present:
		return dir + " is not limited"
	case is.Program == 0 && i == ingress:
		return dir + " is not limited, and has unused queues"
	case is.Program == 0:
		return dir + " has queues without rules, and all packets go through the queue of control traffic"
	case !is.tree.present:
		return dir + " has rules without queues, and is not limited"
	case is.Program == was.Program && !differs(desiredSide{classes: was.tree.list()}):
		return dir + " has its old groups"
	case is.Program == was.Program:
		return dir + " has its old rules and partly new queues"
	case m.desired[i].Tree != nil && !differs(m.desired[i]):
		return dir + " has its new groups"
	}
	return dir + " has its new rules and partly old or missing queues"
}
