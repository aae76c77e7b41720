package htb

import (
	"math"
	"slices"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper/classifier"
	"headgate/unit"
)

// Numbers of the kernel's objects. The major number spells "HG", so that a
// reader of `tc qdisc` sees whose tree it is, and Clear knows.
const (
	major        = 0x4847
	rootMinor    = 1
	controlMinor = 2
	dropMinor    = 3 // where the classifier cannot drop
	firstMinor   = 0x10
	lastMinor    = 0x3ffe // also the handles of leaves; those of clients are above (classifier.FirstClient)
	otherHandle  = 0x3fff // of the client's leaf that would have the tree's own
	largeFrames  = 0x8000 // with this, the class of frames that are larger than a leaf passes
	innerHTB     = 0x8000 // with this, the major number of the HTB of a group that has groups (INNER_MAJOR in bpf/queue.h)
	behindLeaf   = 0xc000 // and, with this, of what is behind them: below clsact's ffff, above most that the kernel gives
)

// htbOf is the HTB that has the classes below a group, or below the limit.
func htbOf(parent uint16) nl.Handle {
	if parent == rootMinor {
		return nl.MakeHandle(major, 0)
	}
	return nl.MakeHandle(innerHTB|parent, 0)
}

// ofHTB is the group whose HTB, or the device's, has a major number.
func ofHTB(m uint16) (parent uint16, ok bool) {
	if m == major {
		return rootMinor, true
	}
	return m &^ innerHTB, m&behindLeaf == innerHTB
}

// lender is the class in an HTB that all others borrow from.
func lender(parent uint16) nl.Handle { return htbOf(parent) | rootMinor }

func leafHandle(minor uint16) nl.Handle {
	if minor == major {
		minor = otherHandle
	}
	return nl.MakeHandle(minor, 0)
}

// behindHandle is the handle of what is behind a leaf's own qdisc.
func behindHandle(leaf nl.Handle) nl.Handle { return nl.MakeHandle(leaf.Major()|behindLeaf, 0) }

// Ours, with what they rest on (bench groups; docs/decisions/0006-the-htb-tree.md).
const (
	// wholeTime is how long the largest packet that a leaf passes whole takes at the
	// leaf's ceiling, and sizeTime how long those take at the limit that the device's
	// senders are asked to make, both rounded up to whole frames. Leaves that cut
	// everything into frames took 1.4 processors at 1 Gbit/s and did not reach it; with
	// 0.25 ms it takes what a FIFO takes, and a quiet group behind a real link waits no
	// longer than that. What comes from elsewhere is cut only if it is much longer: to
	// cut costs the most (docs/decisions/0025-packets-sized-to-the-limit.md).
	wholeTime = 0.0006
	sizeTime  = 0.00025
	// nearTime is wholeTime where no link is behind that could be full, but this host or a
	// guest on it: there a long packet holds up nobody in the group beside it, and super-packets
	// of 64 KB, which are what guests and other hosts send, pass whole from 190 Mbit/s on.
	nearTime = 0.003
	// superPacket is the most that one unsegmented packet counts: 64 KB and the
	// headers of its 45 segments.
	superPacket = 68 * 1024
	// largeFrame is a frame of the largest MTU that is common, 9,216 bytes.
	largeFrame = 9*1024 + 50
	// burstTime is how much of its rate a class may send at once. Timers on a
	// busy machine are late by up to some 0.3 ms; what a class saves up beyond
	// this is lost, and what it sends at once queues in the real link behind.
	burstTime = 0.0005
	// turnTime bounds what one borrower sends in its turn, and with it how
	// unequal guarantees can be before lending among them is not in proportion. It
	// is also how long a group inside another saves up its guarantee: while the
	// outer one waits for its turn, none in it is served.
	turnTime = 0.020
	// leastTurns is by how much guarantees may differ in any case.
	leastTurns = 16
	// lenderTime is what a group's HTB may send at once, at a rate that nothing has.
	lenderTime = 0.010
	// controlPart of the limit is kept for control traffic, out of the guarantees
	// if these take it all: half of all budgets (classifier.ControlPart); the rest is
	// borrowed, before all others. controlCeiling is the most that comes there unclassified.
	controlPart    = 2 * classifier.ControlPart
	controlCeiling = 4
)

// class is one HTB class as it should be. The device's HTB has the groups of the first
// level. A group that has groups is a class with an HTB as its queue, which lends
// without bound: how much there is to divide is the outer one's affair, and who gets it
// the inner one's (docs/decisions/0028-an-htb-for-each-group.md).
type class struct {
	minor, parent uint16 // the parent is a group, or the limit
	leaf          bool
	large         bool // a twin
	inner         int  // the level of groups in it, or of clients; 0: none
	client        int  // which of its group's clients, from 1 on; 0: a group
	clients       group.Clients
	htb           nl.HTBClass
	queue         leaf   // of a leaf
	path          string // of the group, for people
	// guarantee and ceiling are the group's, for people: the class's own rate may be less
	// (builder.guarantees), and its own ceiling more, if it is the outer group's.
	guarantee, ceiling unit.Rate
}

// handle is the class's own, and above that of the class that it borrows from.
func (c class) handle() nl.Handle {
	if c.minor == rootMinor {
		return lender(rootMinor)
	}
	return htbOf(c.parent) | nl.Handle(c.minor)
}

func (c class) above() nl.Handle {
	if c.minor == rootMinor {
		return htbOf(rootMinor)
	}
	return lender(c.parent)
}

// twin is the class of c's packets once there was one that is larger than c's leaf passes,
// if that splits packets: TBF's largest packet is fixed when it is made, and the device's
// MTU may be raised at any time, by anyone. Nothing goes there as long as the MTU is what it
// was, and then all that c has, so that its rates can be c's: guarantee and ceiling hold for
// frames of every length. Its queue is the FIFO that HTB makes.
func (b builder) twin(c class) class {
	c.minor |= largeFrames
	c.leaf, c.queue, c.large = false, leaf{}, true
	c.path += " (frames above the MTU)"
	c.htb.Quantum *= uint32(1 + largeFrame/b.least(c.ceiling))
	return c
}

// twinOf is the one class of all groups of a parent that have no ceiling of their own and
// whose leaves pass every frame of a common MTU (largeFrame): of larger ones alone, which
// have no guarantee there. A class beside each of 4,000 leaves made an apply take twice as
// long.
func (b builder) twinOf(parent uint16, first class) class {
	first.minor, first.parent = parent|largeFrames, parent
	first.leaf, first.queue, first.large = false, leaf{}, true
	first.path = "(frames above the MTU)"
	first.htb.Rate, first.htb.Buffer = 1, nl.BufferTicks(superPacket, 1)
	return first
}

// hasOwnCeiling tells whether a class's ceiling is its own, and not what it is in.
func (b builder) hasOwnCeiling(c class) bool {
	if c.parent == rootMinor {
		return c.ceiling != b.tree.Limit
	}
	return c.htb.Ceil != lends.Ceil
}

// splits tells whether some leaf splits packets.
func splits(classes []class) bool {
	return slices.ContainsFunc(classes, func(c class) bool { return c.queue.fifo.Segment > 0 })
}

// facts are what the tree depends on besides the plan.
type facts struct {
	mtu        int
	overhead   group.Overhead
	flowQueues bool // the kernel has fq_codel
	near       bool // what leaves the tree is there, and enters no link
	byAction   bool // the classifier cannot drop: a filter's action redirects each packet
}

// frame is the largest packet that is not a super-packet: Ethernet, two tags and
// some room for a link's own header.
func (l facts) frame() uint64 { return uint64(l.mtu) + 14 + 8 + 28 }

// classes is the whole tree, parents first. minor gives the class id of a node.
func (b builder) classes(minor func(node int) uint16, places map[string]classifier.Places) []class {
	t := b.tree
	out := []class{
		{minor: rootMinor, ceiling: t.Limit, htb: b.root()},
		{
			minor: controlMinor, parent: rootMinor, leaf: true, path: "(control)", guarantee: t.Limit / controlPart, ceiling: t.Limit / controlCeiling,
			htb:   b.control(),
			queue: b.leaf(t.Limit/controlPart, t.Limit/controlCeiling),
		},
	}
	if b.link.byAction {
		out = append(out, class{
			minor: dropMinor, parent: rootMinor, leaf: true, path: "(dropped)", htb: nl.HTBClass{Rate: 1, Ceil: 1, Quantum: uint32(b.link.frame())},
			queue: leaf{fifo: nl.Leaf{Limit: 1}}, // less than any packet
		})
	}
	for i, n := range t.Nodes {
		c := class{minor: minor(i), parent: rootMinor, leaf: n.Leaf && n.Clients.IsZero(), path: n.Path, guarantee: n.Guarantee, ceiling: n.Ceiling}
		if c.leaf {
			c.queue = b.leaf(n.Guarantee, n.Ceiling)
		} else {
			c.inner = n.Depth
		}
		c.htb = b.class(float64(n.Guarantee)*b.guarantees, b.own(n.Ceiling))
		if n.Parent >= 0 {
			c.parent = minor(n.Parent)
			b.inside(&c.htb, n)
		}
		c.htb.Quantum, c.htb.Prio = uint32(b.quantum(n)), b.prio(n)
		out = append(out, c)
		if !n.Clients.IsZero() {
			out = b.clients(out, i, c, places[n.Path])
		}
	}
	shared := map[uint16]bool{}
	for _, c := range out {
		most := c.queue.fifo.Segment
		switch {
		case !c.leaf || most == 0 || c.client > 1:
		case c.client == 1:
			out = append(out, b.twinOfAll(c))
		case most < largeFrame || b.hasOwnCeiling(c):
			out = append(out, b.twin(c))
		case !shared[c.parent]:
			shared[c.parent] = true
			out = append(out, b.twinOf(c.parent, c))
		}
	}
	return out
}

func newBuilder(t group.Tree, l facts) builder {
	b := builder{tree: t, link: l, guarantees: 1, weights: map[int]span{}}
	var total unit.Rate
	for _, n := range t.Nodes {
		if n.Parent < 0 {
			total += n.Guarantee
		}
		weight := t.Weight(n)
		s, ok := b.weights[n.Parent]
		if !ok {
			s = span{weight, weight}
		}
		b.weights[n.Parent] = span{min(s.least, weight), max(s.most, weight)}
	}
	// A class below its own rate does not wait for the root, so the rates of all
	// may not exceed it. What the guarantees lose here comes back as spare.
	if kept := t.Limit - t.Limit/controlPart; total > kept {
		b.guarantees = float64(kept) / float64(total)
	}
	return b
}

type builder struct {
	tree       group.Tree
	link       facts
	guarantees float64      // the part of each guarantee that is its class's own rate
	weights    map[int]span // of a parent's groups
}

// span is the smallest of some weights, and the largest.
type span struct{ least, most unit.Rate }

// whole is the largest packet in bytes that a leaf passes as it is; 0 is any.
func (b builder) whole(ceiling unit.Rate) uint64 {
	return b.frames(ceiling, b.wholeTime()) * b.link.frame()
}

func (b builder) wholeTime() float64 {
	if b.link.near {
		return nearTime
	}
	return wholeTime
}

// frames is how many full frames a packet may have that takes so long at a rate, in
// seconds, rounded up; 0 is any number. Where each has an overhead to be counted, it is
// one.
func (b builder) frames(rate unit.Rate, takes float64) uint64 {
	if b.link.overhead != (group.Overhead{}) {
		return 1
	}
	n := max(uint64(math.Ceil(float64(rate.BytesPerSecond())*takes/float64(b.link.frame()))), 1)
	if n*b.link.frame() >= superPacket {
		return 0
	}
	return n
}

// least is the largest packet that such a leaf sends at once.
func (b builder) least(ceiling unit.Rate) uint64 {
	if whole := b.whole(ceiling); whole > 0 {
		return whole + uint64(b.link.overhead.Frame)
	}
	return max(superPacket, b.link.frame())
}

// burst is what a class may send at once, in bytes; rate is in bytes a second.
func (b builder) burst(rate uint64, ceiling unit.Rate) uint64 {
	return max(uint64(float64(rate)*burstTime), b.least(ceiling), 2*b.link.frame())
}

// Burst is what a limit lets through at once: whoever limits behind it must take as
// much.
func Burst(limit unit.Rate, mtu int) unit.Bytes {
	b := builder{link: facts{mtu: mtu}}
	return unit.Bytes(b.burst(limit.BytesPerSecond(), limit))
}

func (b builder) class(rate float64, ceiling unit.Rate) nl.HTBClass {
	r, c := max(uint64(rate/8), 1), max(ceiling.BytesPerSecond(), 1)
	burst := func(rate uint64) uint32 { return nl.BufferTicks(b.burst(rate, ceiling), rate) }
	return nl.HTBClass{
		Rate: r, Ceil: c, Buffer: burst(r), Cbuffer: burst(c),
		Overhead: uint16(b.link.overhead.Frame), Minimum: uint16(b.link.overhead.Minimum),
	}
}

// root is the class of the limit. It takes no turns; without a quantum the kernel computes
// one, and logs that it is large.
func (b builder) root() nl.HTBClass {
	c := b.class(float64(b.tree.Limit), b.tree.Limit)
	c.Quantum = uint32(b.link.frame())
	return c
}

// lends is the class of an inner HTB that all its groups borrow from: of a rate that is
// never used up.
var lends = func() nl.HTBClass {
	rate := unit.MaxRate.BytesPerSecond()
	burst := nl.BufferTicks(uint64(float64(rate)*lenderTime), rate)
	return nl.HTBClass{Rate: rate, Ceil: rate, Buffer: burst, Cbuffer: burst}
}()

// own is the ceiling of a group's class.
func (b builder) own(ceiling unit.Rate) unit.Rate {
	if ceiling == b.tree.Limit {
		return ceiling
	}
	return ceiling - ceiling/classifier.CeilingCut
}

// inside makes the class of a group that is in another one of it.
func (b builder) inside(c *nl.HTBClass, n group.Node) {
	c.Buffer = max(c.Buffer, nl.BufferTicks(uint64(float64(c.Rate)*turnTime), c.Rate))
	if n.Ceiling == b.tree.Nodes[n.Parent].Ceiling { // which the outer one sees to
		c.Ceil, c.Cbuffer = lends.Ceil, lends.Cbuffer
	}
}

// control is the class of control traffic. Its bursts are as large as the budgets
// that the classifier holds it to, so that none of it waits even where guarantees
// take all the rest; what comes here without having been classified may not have more.
func (b builder) control() nl.HTBClass {
	limit := b.tree.Limit
	c := b.class(float64(limit/controlPart), limit/controlCeiling)
	c.Quantum = uint32(b.least(limit))
	burst := max((limit/controlPart).BytesPerSecond()*classifier.ControlTime, b.burst(c.Ceil, limit))
	c.Buffer, c.Cbuffer = nl.BufferTicks(burst, c.Rate), nl.BufferTicks(burst, c.Ceil)
	return c
}

// quantum is what a group sends in its turn among those that borrow beside it. A quantum
// below one packet would give turns by packets: measured, 34.9 to 60.7 where 19.1 to
// 76.5 was right.
func (b builder) quantum(n group.Node) uint64 {
	ceiling, rate := b.tree.Limit, b.tree.Limit
	if n.Parent >= 0 {
		// A turn may come at no more than the outer group's guarantee.
		ceiling, rate = b.tree.Nodes[n.Parent].Ceiling, b.tree.Nodes[n.Parent].Guarantee
	}
	// All count in the same unit, whatever packets they pass.
	unitQuantum := b.least(ceiling)
	if b.tree.Spare != group.Proportional {
		return unitQuantum
	}
	// Where weights differ too much the smallest get more than their part; the others are
	// in proportion. A group without a guarantee has a thousandth, and the default is often one.
	most := max(float64(rate.BytesPerSecond())*turnTime, float64(leastTurns*unitQuantum))
	weights := b.weights[n.Parent]
	scale := min(float64(unitQuantum)/float64(weights.least), most/float64(weights.most))
	return max(uint64(float64(b.tree.Weight(n))*scale), unitQuantum)
}

func (b builder) prio(n group.Node) uint32 {
	if b.tree.Spare == group.Priority {
		return uint32(n.Priority) + 1
	}
	return 1
}
