package htb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/attach"
	"headgate/shaper/classifier"
)

// former is what a device had, kept until its move has succeeded.
type former struct {
	*attach.Held
	works  [2]bool // the side has a classifier that sends its packets somewhere
	ifb    netlink.Link
	paces  [2][]pace
	allow  [2][]classifier.Allowance
	assign func() error // assigns again what the move has taken back
}

func (m *move) hold() (*former, error) {
	held, err := m.k.Hold()
	if err != nil {
		return nil, err
	}
	b := &former{Held: held, ifb: m.k.sides[ingress].qdisc}
	for i, s := range m.k.sides {
		lost := i == ingress && (s.qdisc == nil || s.Record != nil && s.Record.IFB != s.qdisc.Attrs().Index)
		if b.works[i] = s.Program != 0 && !lost; !b.works[i] {
			held.Drop(i) // better no classifier than one that sends packets nowhere
		}
		if m.sides[i].paces {
			if b.paces[i], err = classifier.ReadAll[pace](s.Maps[paces]); err != nil {
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

// undo brings back what the device had before a move that failed, and says what is
// in force. It looks at what is there, because any of the requests of a batch may
// have been refused, and the others are done.
func (m *move) undo(cause error, old *former, made [2]*classifier.Program) error {
	dev := m.k.Name()
	err := with(dev, func(c *nl.Conn, now *kernel) error { return m.restore(c, now, old) })
	if errors.Is(err, shaper.ErrNoDevice) {
		return fmt.Errorf("%w (it went while it was changed)", err)
	}
	if err != nil {
		return fmt.Errorf("device %s: %w; what was in force before cannot be brought back: %w; %s: apply again, or run \"headgate clear --dev %s\"",
			dev, cause, err, m.inForce(made), dev)
	}
	for i, p := range made {
		if p != nil && p.Record.Token != m.k.sides[i].token() {
			forget(p.Record.Token)
		}
	}
	return fmt.Errorf("device %s is as it was before: %w", dev, cause)
}

// restore leads from what is there now to what was.
func (m *move) restore(c *nl.Conn, now *kernel, old *former) error {
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
		set, remove[i] = treeSteps(want{classes: was.tree.list(), filter: was.tree.filtered}, is.tree)
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
	// Only now does nothing send packets there.
	if old.ifb == nil {
		if err := now.removeIFB(); err != nil {
			return err
		}
	}
	return m.restoreMaps(old)
}

// restoreMaps puts back what was written to the maps of programs that stay.
func (m *move) restoreMaps(old *former) error {
	for i := range m.sides {
		s := &m.k.sides[i]
		if m.sides[i].record {
			if _, err := s.Record.Rewrite(s.Maps); err != nil {
				return err
			}
		}
		if err := putPaces(s.Maps[paces], numbers(len(old.paces[i])), old.paces[i]); err != nil {
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

// numbers are all minors of a map with n entries.
func numbers(n int) []uint32 {
	minors := make([]uint32, n)
	for i := range minors {
		minors[i] = uint32(i)
	}
	return minors
}

// list is the tree as classes, parents first. A queue that is not ours stays out
// of it.
func (t tree) list() (out []class) {
	minors := obsolete(t, nil)
	slices.Reverse(minors)
	level := map[uint16]int{}
	for _, minor := range minors {
		c, l := t.classes[minor], t.leaves[minor]
		level[minor] = level[c.parent] + 1
		was := class{minor: minor, parent: c.parent, leaf: l.known, large: minor&largeFrames != 0, htb: c.htb, queue: l.leaf}
		if _, inner := t.inner[minor]; inner {
			was.inner = level[minor] - 1 // the limit has the first
		}
		out = append(out, was)
	}
	return out
}

// inForce says in words what each direction has after a move that could be neither
// made nor undone.
func (m *move) inForce(made [2]*classifier.Program) string {
	var words []string
	err := with(m.k.Name(), func(_ *nl.Conn, now *kernel) error {
		for i := range now.sides {
			words = append(words, m.hasNow(i, &now.sides[i], made[i]))
		}
		return nil
	})
	if err != nil {
		return fmt.Sprintf("what is in force cannot be told (%v)", err)
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", ")
}

func (m *move) hasNow(i int, is *side, made *classifier.Program) string {
	was, dir := &m.k.sides[i], m.want[i].String()
	differs := func(w want) bool { set, remove := treeSteps(w, is.tree); return len(set)+len(remove) > 0 }
	switch {
	case is.Program == 0 && !is.tree.present:
		return dir + " is not limited"
	case is.Program == 0 && i == ingress:
		return dir + " is not limited, and has queues that nothing goes through"
	case is.Program == 0:
		return dir + " has queues without rules, and all of it goes through that of control traffic"
	case !is.tree.present:
		return dir + " has rules without queues, and is not limited"
	case is.Program == was.Program && !differs(want{classes: was.tree.list()}):
		return dir + " has its old groups"
	case is.Program == was.Program:
		return dir + " has its old rules, and queues that are in part new"
	case m.want[i].Tree != nil && !differs(m.want[i]):
		return dir + " has its new groups"
	}
	return dir + " has its new rules, and queues that are in part old or missing"
}
