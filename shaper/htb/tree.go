package htb

import (
	"headgate/group"
	"headgate/internal/nl"
	"headgate/unit"
)

// Numbers of the kernel's objects. The major number spells "HG", so that a
// reader of `tc qdisc` sees whose tree it is, and Clear knows.
const (
	major        = 0x4847
	rootMinor    = 1
	controlMinor = 2
	firstMinor   = 0x10
	lastMinor    = 0x3ffe // also the handles of leaves, which stay below the tree's own
	behindLeaf   = 0xc000 // and, with this, of what is behind them: below clsact's ffff, above most that the kernel gives
)

func classHandle(minor uint16) nl.Handle { return nl.MakeHandle(major, minor) }
func leafHandle(minor uint16) nl.Handle  { return nl.MakeHandle(minor, 0) }

// behindHandle is the handle of what is behind a leaf's own qdisc.
func behindHandle(leaf nl.Handle) nl.Handle { return nl.MakeHandle(leaf.Major()|behindLeaf, 0) }

// Ours, with what they rest on (bench groups; docs/decisions/0006-the-htb-tree.md).
const (
	// segmentBelow: a super-packet of 64 KB takes more than 0.5 ms below it.
	segmentBelow = 64 * 1024 * 8 * 2000 * unit.BitPerSecond
	// segmentBelowGuarantee: the least that an unsplit queue holds takes longer
	// than a full queue may (leaf.go).
	segmentBelowGuarantee = unsplitPackets * superPacket * 8 * 10 * unit.BitPerSecond
	// superPacket is the most that one unsegmented packet counts: 64 KB and the
	// headers of its 45 segments.
	superPacket = 68 * 1024
	// burstTime is how much of its rate a class may send at once. Timers on a
	// busy machine are late by up to some 0.3 ms; what a class saves up beyond
	// this is lost, and what it sends at once queues in the real link behind.
	burstTime = 0.0005
	// turnTime bounds what one borrower sends in its turn, and with it how
	// unequal guarantees can be before lending among them is not in proportion.
	turnTime = 0.010
	// nestedTurn lengthens turns where groups nest. HTB has one pointer per parent
	// for all lenders above it, so that a turn that ends at one ends at all: with
	// turns of one packet two groups below a lender got next to nothing of what
	// the root lent; 8 packets were 10 % off, 32 packets 5 %
	// (docs/decisions/0005-lending-in-nested-groups.md).
	nestedTurn = 32
	// controlPart of the limit is kept for control traffic, out of the guarantees
	// if these take it all; controlCeiling is the most that it ever gets.
	controlPart    = 100
	controlCeiling = 4
)

// class is one HTB class as it should be.
type class struct {
	minor, parent uint16
	leaf          bool
	htb           nl.HTBClass
	queue         leaf   // of a leaf
	path          string // of the group, for people
}

// facts are what the tree depends on besides the plan.
type facts struct {
	mtu        int
	overhead   group.Overhead
	flowQueues bool // the kernel has fq_codel
}

// frame is the largest packet that is not a super-packet: Ethernet, two tags and
// some room for a link's own header.
func (l facts) frame() uint64 { return uint64(l.mtu) + 14 + 8 + 28 }

// classes is the whole tree, parents first. minor gives the class id of a node.
func classes(t group.Tree, minor func(node int) uint16, l facts) []class {
	b := builder{tree: t, link: l, guarantees: 1}
	var total unit.Rate
	for _, n := range t.Nodes {
		if n.Parent < 0 {
			total += n.Guarantee
		}
	}
	// A class below its own rate does not wait for the root, so the rates of all
	// may not exceed it. What the guarantees lose here comes back as spare.
	if kept := t.Limit - t.Limit/controlPart; total > kept {
		b.guarantees = float64(kept) / float64(total)
	}
	b.lightest = t.Limit
	for _, n := range t.Nodes {
		if n.Leaf {
			b.lightest = min(b.lightest, t.Weight(n))
		}
		b.nested = b.nested || !n.Leaf
	}
	out := []class{
		{minor: rootMinor, htb: b.class(float64(t.Limit), t.Limit, 0, 0)},
		{
			minor: controlMinor, parent: rootMinor, leaf: true, path: "(control)",
			htb:   b.class(float64(t.Limit/controlPart), t.Limit/controlCeiling, b.least(0, t.Limit), 0),
			queue: b.leaf(t.Limit/controlPart, t.Limit/controlCeiling),
		},
	}
	for i, n := range t.Nodes {
		c := class{minor: minor(i), parent: rootMinor, leaf: n.Leaf, path: n.Path}
		if n.Parent >= 0 {
			c.parent = minor(n.Parent)
		}
		var quantum uint64
		if n.Leaf {
			quantum = b.quantum(n)
			c.queue = b.leaf(n.Guarantee, n.Ceiling)
		}
		c.htb = b.class(float64(n.Guarantee)*b.guarantees, n.Ceiling, quantum, b.prio(n))
		out = append(out, c)
	}
	return out
}

type builder struct {
	tree       group.Tree
	link       facts
	guarantees float64   // the part of each guarantee that is its class's own rate
	lightest   unit.Rate // the smallest weight of a leaf
	nested     bool      // some group has groups
}

// segments tells whether a queue splits super-packets: where they would hold
// others up, where the few that it must hold take too long at the guarantee (0 if
// there is none), and where each packet has an overhead to be counted.
func (b builder) segments(guarantee, ceiling unit.Rate) bool {
	return ceiling < segmentBelow || guarantee > 0 && guarantee < segmentBelowGuarantee || b.link.overhead != group.Overhead{}
}

// least is the largest unit that such a queue sends at once.
func (b builder) least(guarantee, ceiling unit.Rate) uint64 {
	if b.segments(guarantee, ceiling) {
		return b.link.frame() + uint64(b.link.overhead.Frame)
	}
	return max(superPacket, b.link.frame())
}

// burst is what a class may send at once, in bytes; rate is in bytes a second.
func (b builder) burst(rate uint64, ceiling unit.Rate) uint64 {
	return max(uint64(float64(rate)*burstTime), 2*b.least(0, ceiling))
}

// Burst is what a limit lets through at once: whoever limits behind it must take as
// much.
func Burst(limit unit.Rate, mtu int) unit.Bytes {
	b := builder{link: facts{mtu: mtu}}
	return unit.Bytes(b.burst(limit.BytesPerSecond(), limit))
}

func (b builder) class(rate float64, ceiling unit.Rate, quantum uint64, prio uint32) nl.HTBClass {
	r, c := max(uint64(rate/8), 1), max(ceiling.BytesPerSecond(), 1)
	burst := func(rate uint64) uint32 { return nl.BufferTicks(b.burst(rate, ceiling), rate) }
	return nl.HTBClass{
		Rate: r, Ceil: c, Buffer: burst(r), Cbuffer: burst(c), Quantum: uint32(quantum), Prio: prio,
		Overhead: uint16(b.link.overhead.Frame), Minimum: uint16(b.link.overhead.Minimum),
	}
}

// quantum is what a leaf sends in its turn among borrowers. A quantum below one
// packet would give turns by packets: measured, 34.9 to 60.7 where 19.1 to 76.5
// was right.
func (b builder) quantum(n group.Node) uint64 {
	least := b.least(n.Guarantee, n.Ceiling)
	// All leaves count in the same unit, segmented or not.
	unitQuantum := b.least(0, b.tree.Limit)
	if b.nested {
		least, unitQuantum = least*nestedTurn, unitQuantum*nestedTurn
	}
	if b.tree.Spare != group.Proportional {
		return max(least, unitQuantum)
	}
	most := max(uint64(float64(b.tree.Limit.BytesPerSecond())*turnTime), 16*unitQuantum)
	q := uint64(float64(unitQuantum) * float64(b.tree.Weight(n)) / float64(b.lightest))
	return max(min(q, most), least)
}

func (b builder) prio(n group.Node) uint32 {
	if b.tree.Spare == group.Priority {
		return uint32(n.Priority) + 1
	}
	return 1
}
