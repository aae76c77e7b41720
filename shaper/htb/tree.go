package htb

import (
	"math"
	"slices"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// Major and minor numbers of the kernel's objects. The major number spells "HG", so that
// readers of `tc qdisc` and Clear recognize Headgate's tree.
const (
	major        = 0x4847
	rootMinor    = 1
	controlMinor = 2
	dropMinor    = 3 // if the classifier cannot drop
	firstMinor   = 0x10
	lastMinor    = 0x3ffe // also the handles of leaves; those of clients follow (classifier.FirstClient)
	otherHandle  = 0x3fff // of the client's leaf whose handle would be the tree's own
	largeFrames  = 0x8000 // flag: the class of frames larger than a leaf passes
	innerHTB     = 0x8000 // flag: the major number of a parent group's HTB (INNER_MAJOR in bpf/queue.h)
	belowLeaf    = 0xc000 // flag: the major number of a qdisc below a leaf; below clsact's ffff and above most numbers that the kernel allocates
)

// htbOf returns the handle of the HTB that has the classes below a group, or below the limit.
func htbOf(parent uint16) nl.Handle {
	if parent == rootMinor {
		return nl.MakeHandle(major, 0)
	}
	return nl.MakeHandle(innerHTB|parent, 0)
}

// ofHTB returns the group, or the limit, whose HTB has a major number.
func ofHTB(m uint16) (parent uint16, ok bool) {
	if m == major {
		return rootMinor, true
	}
	return m &^ innerHTB, m&belowLeaf == innerHTB
}

// topClass returns the handle of the class in an HTB that all others borrow from.
func topClass(parent uint16) nl.Handle { return htbOf(parent) | rootMinor }

func leafHandle(minor uint16) nl.Handle {
	if minor == major {
		minor = otherHandle
	}
	return nl.MakeHandle(minor, 0)
}

// childHandle returns the handle of the qdisc below a leaf's own qdisc.
func childHandle(leaf nl.Handle) nl.Handle { return nl.MakeHandle(leaf.Major()|belowLeaf, 0) }

// Constants of Headgate, with their reasons (bench groups;
// docs/decisions/0006-the-htb-tree.md).
const (
	// unsplitTime is the transmission time, at the leaf's ceiling, of the largest packet that a
	// leaf passes unsplit. sizeTime is the transmission time, at the limit, of the largest
	// packet that the device's senders are asked to build. Both are rounded up to whole frames.
	// Leaves that split every packet into frames used 1.4 processors at 1 Gbit/s and did not
	// reach the rate. With 0.25 ms the cost is that of a FIFO, and a quiet group behind a real
	// link waits no longer than that. Packets from elsewhere are split only if they are much
	// longer, because splitting is expensive
	// (docs/decisions/0025-packets-sized-to-the-limit.md).
	unsplitTime = 0.0006
	sizeTime    = 0.00025
	// localUnsplitTime replaces unsplitTime if the packets do not enter a link that could be congested,
	// but go to this host or to a guest on it. There, a long packet does not delay other
	// groups, and super-packets of 64 KB, which guests and other hosts send, pass unsplit from
	// 190 Mbit/s on.
	localUnsplitTime = 0.003
	// superPacket is the maximum length that one unsplit packet is counted with: 64 KB and the
	// headers of its 45 segments.
	superPacket = 68 * 1024
	// largeFrame is a frame of the largest common MTU, 9,216 bytes.
	largeFrame = 9*1024 + 50
	// burstTime is the burst of a class as a time at its rate. Timers on a busy machine are
	// late by up to some 0.3 ms. Credit beyond the burst is lost, and a burst queues in the
	// real link behind.
	burstTime = 0.0005
	// turnTime is the maximum duration of one borrower's quantum. It limits how unequal
	// guarantees can be before borrowing is no longer in proportion. It is also the burst of
	// the guarantee of a nested group: while the parent class waits for its turn, none of its
	// groups is served.
	turnTime = 0.020
	// leastTurns is the minimum ratio of guarantees that borrowing supports in proportion.
	leastTurns = 16
	// lenderTime is the burst of the inner HTB's top class, at a rate that is never reached.
	lenderTime = 0.010
	// controlPart is the divisor of the limit for the guarantee of control traffic, taken from
	// the guarantees of groups if these use the whole limit: half of all budgets
	// (classifier.ControlDivisor). The rest is borrowed with precedence over all groups.
	// controlCeiling is the divisor for the maximum rate of unclassified packets in that class.
	controlPart    = 2 * classifier.ControlDivisor
	controlCeiling = 4
)

// class is the desired state of one HTB class. The device's HTB has the groups of the first
// level. A parent group is a class with an HTB as its queue, which lends without limit: the
// outer HTB decides how much bandwidth there is, and the inner HTB divides it
// (docs/decisions/0028-an-htb-for-each-group.md).
type class struct {
	minor, parent uint16 // parent is a group or the limit
	leaf          bool
	large         bool // a twin: the class of frames larger than the leaf passes
	inner         int  // the level of the groups or clients in it; 0: none
	client        int  // the number of the client in its group, from 1 on; 0: a group
	clients       group.Clients
	htb           nl.HTBClass
	queue         leaf   // only of a leaf
	path          string // of the group, for messages; "" if it belongs to no group
	// guarantee and ceiling are those of the group, for messages: the class's own rate may be
	// lower (builder.guarantees), and its own ceiling higher, if the parent group limits it.
	guarantee, ceiling unit.Rate
	// adjustable means that ceiling is a limit that changes (adjust.go).
	adjustable bool
}

// handle returns the handle of the class; above returns that of the class that it borrows from.
func (c class) handle() nl.Handle {
	if c.minor == rootMinor {
		return topClass(rootMinor)
	}
	return htbOf(c.parent) | nl.Handle(c.minor)
}

func (c class) above() nl.Handle {
	if c.minor == rootMinor {
		return htbOf(rootMinor)
	}
	return topClass(c.parent)
}

// object names the class in a change.
func (c class) object(direction string) string {
	of := direction + " group " + c.path
	switch {
	case c.minor == rootMinor:
		return direction + " limit"
	case c.minor == controlMinor:
		return direction + " control traffic"
	case c.minor == dropMinor:
		return direction + " dropped packets"
	case c.large && c.path == "":
		return direction + " frames above the MTU"
	case c.large:
		return of + ", frames above the MTU"
	case c.client > 0:
		return of + ", each client"
	}
	return of
}

// derived reports whether no group of the configuration, nor its limit, is the class.
func (c class) derived() bool { return c.large || c.minor == controlMinor || c.minor == dropMinor }

// largeFrameClass returns the class for packets larger than c's leaf passes, if that leaf splits packets.
// It exists because TBF's largest packet is fixed at creation, while any program may raise the
// device's MTU at any time. With the original MTU no packet uses the twin, and afterwards all
// packets of c do, so the twin has c's rates: guarantee and ceiling hold for frames of every
// length. Its queue is the FIFO that HTB creates.
func (b builder) largeFrameClass(c class) class {
	c.minor |= largeFrames
	c.leaf, c.queue, c.large = false, leaf{}, true
	ceiling := c.ceiling
	if c.adjustable {
		ceiling = b.tree.Limit
	}
	c.htb.Quantum *= uint32(1 + largeFrame/b.maxPacket(ceiling))
	return c
}

// sharedLargeFrameClass returns a class that all groups of a parent share, if they have no ceiling of their
// own and their leaves pass every frame of a common MTU (largeFrame). It takes only larger
// frames, which have no guarantee there. A twin for each of 4,000 leaves doubled the time of an
// apply.
func (b builder) sharedLargeFrameClass(parent uint16, first class) class {
	first.minor, first.parent = parent|largeFrames, parent
	first.leaf, first.queue, first.large = false, leaf{}, true
	first.path = ""
	first.htb.Rate, first.htb.Buffer = 1, nl.BufferTicks(superPacket, 1)
	return first
}

// hasOwnCeiling reports whether a class has a ceiling lower than its parent's.
func (b builder) hasOwnCeiling(c class) bool {
	if c.parent == rootMinor {
		return c.adjustable || c.ceiling != b.tree.Limit
	}
	return c.htb.Ceil != unlimitedClass.Ceil
}

// splits reports whether some leaf splits packets.
func splits(classes []class) bool {
	return slices.ContainsFunc(classes, func(c class) bool { return c.queue.fifo.Segment > 0 })
}

// linkFacts are the properties of the device and the kernel that the tree depends on.
type linkFacts struct {
	mtu        int
	overhead   group.Overhead
	flowQueues bool // the kernel has fq_codel
	near       bool // the tree's packets stay on this host and enter no link
	byAction   bool // the classifier cannot drop, because a filter's action redirects each packet
}

// frame returns the maximum length of a packet that is not a super-packet: Ethernet, two tags
// and space for a link's own header.
func (l linkFacts) frame() uint64 { return uint64(l.mtu) + 14 + 8 + 28 }

// classes returns the whole tree, parents first. minor returns the class ID of a node.
func (b builder) classes(minor func(node int) uint16, places map[string]classifier.ClientRange) []class {
	t := b.tree
	out := []class{
		{minor: rootMinor, ceiling: t.Limit, htb: b.root()},
		{
			minor: controlMinor, parent: rootMinor, leaf: true, guarantee: t.Limit / controlPart, ceiling: t.Limit / controlCeiling,
			htb:   b.control(),
			queue: b.leaf(t.Limit/controlPart, t.Limit/controlCeiling),
		},
	}
	if b.link.byAction {
		out = append(out, class{
			minor: dropMinor, parent: rootMinor, leaf: true, htb: nl.HTBClass{Rate: 1, Ceil: 1, Quantum: uint32(b.link.frame())},
			queue: leaf{fifo: nl.Leaf{Limit: 1}}, // smaller than any packet
		})
	}
	for i, n := range t.Nodes {
		c := class{minor: minor(i), parent: rootMinor, leaf: n.Leaf && n.Clients.IsZero(), path: n.Path, guarantee: n.Guarantee, ceiling: n.Ceiling}
		switch {
		case n.Adjustable:
			c.adjustable, c.ceiling = true, b.limitOf(n)
			c.queue, c.htb = b.adjustableLeaf(n), b.adjustableClass(n, c.ceiling)
		case c.leaf:
			c.queue = b.leaf(n.Guarantee, n.Ceiling)
		default:
			c.inner = n.Depth
		}
		if !n.Adjustable {
			c.htb = b.class(float64(n.Guarantee)*b.guarantees, b.classCeiling(n.Ceiling))
		}
		b.keepCredit(&c.htb, n.Parent)
		if n.Parent >= 0 {
			c.parent = minor(n.Parent)
			b.nest(&c.htb, n)
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
			out = append(out, b.clientsLargeFrameClass(c))
		case most < largeFrame || b.hasOwnCeiling(c):
			out = append(out, b.largeFrameClass(c))
		case !shared[c.parent]:
			shared[c.parent] = true
			out = append(out, b.sharedLargeFrameClass(c.parent, c))
		}
	}
	return out
}

func newBuilder(t group.Tree, l linkFacts) builder {
	b := builder{tree: t, link: l, guarantees: 1, weights: map[int]span{}, rounds: map[int]float64{}}
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
	for _, n := range t.Nodes {
		_, rate := b.above(n)
		b.rounds[n.Parent] += float64(b.quantum(n)) / float64(max(rate.BytesPerSecond(), 1))
	}
	// A class below its own rate does not wait for the root, so the rates of all classes must
	// not exceed the root's. Reduced guarantees are compensated by spare bandwidth.
	if kept := t.Limit - t.Limit/controlPart; total > kept {
		b.guarantees = float64(kept) / float64(total)
	}
	return b
}

type builder struct {
	tree       group.Tree
	link       linkFacts
	guarantees float64              // the factor between a guarantee and the rate of its class
	weights    map[int]span         // of the child groups, by parent
	rounds     map[int]float64      // the time in which each child group has a turn, in seconds, by parent
	limits     map[string]unit.Rate // the limits of adjustable groups, by path; see adjust.go
}

// span is the lowest and the highest of some weights.
type span struct{ least, most unit.Rate }

// maxUnsplit returns the size in bytes of the largest packet that a leaf passes unsplit; 0 means
// any.
func (b builder) maxUnsplit(ceiling unit.Rate) uint64 {
	return b.frames(ceiling, b.unsplitTime()) * b.link.frame()
}

func (b builder) unsplitTime() float64 {
	if b.link.near {
		return localUnsplitTime
	}
	return unsplitTime
}

// frames returns the number of full frames that a link sends in a time at a rate, in seconds,
// rounded up; 0 means any number. If each frame has an overhead to be counted, the result is
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

// maxPacket returns the size of the largest packet that a leaf of this ceiling sends at once.
func (b builder) maxPacket(ceiling unit.Rate) uint64 {
	if whole := b.maxUnsplit(ceiling); whole > 0 {
		return whole + uint64(b.link.overhead.Frame)
	}
	return max(superPacket, b.link.frame())
}

// burst returns the burst of a class in bytes; rate is in bytes per second.
func (b builder) burst(rate uint64, ceiling unit.Rate) uint64 {
	return b.burstOf(rate, b.maxPacket(ceiling))
}

// burstOf is burst for a class with this largest packet, in bytes.
func (b builder) burstOf(rate, packet uint64) uint64 {
	return max(uint64(float64(rate)*burstTime), packet, 2*b.link.frame())
}

// Burst returns the burst of a limit: a limiter behind it must accept as much.
func Burst(limit unit.Rate, mtu int) unit.Bytes {
	b := builder{link: linkFacts{mtu: mtu}}
	return unit.Bytes(b.burst(limit.BytesPerSecond(), limit))
}

func (b builder) class(rate float64, ceiling unit.Rate) nl.HTBClass {
	return b.classOf(rate, ceiling, b.maxPacket(ceiling))
}

// classOf is class for a class with this largest packet, in bytes.
func (b builder) classOf(rate float64, ceiling unit.Rate, packet uint64) nl.HTBClass {
	r, c := max(uint64(rate/8), 1), max(ceiling.BytesPerSecond(), 1)
	burst := func(rate uint64) uint32 { return nl.BufferTicks(b.burstOf(rate, packet), rate) }
	return nl.HTBClass{
		Rate: r, Ceil: c, Buffer: burst(r), Cbuffer: burst(c),
		Overhead: uint16(b.link.overhead.Frame), Minimum: uint16(b.link.overhead.Minimum),
	}
}

// root returns the class of the limit. It takes no turns; without a quantum, the kernel
// computes one and logs that it is large.
func (b builder) root() nl.HTBClass {
	c := b.class(float64(b.tree.Limit), b.tree.Limit)
	c.Quantum = uint32(b.link.frame())
	return c
}

// unlimitedClass is the class of an inner HTB that all its groups borrow from. Its rate is never
// reached.
var unlimitedClass = func() nl.HTBClass {
	rate := unit.MaxRate.BytesPerSecond()
	burst := nl.BufferTicks(uint64(float64(rate)*lenderTime), rate)
	return nl.HTBClass{Rate: rate, Ceil: rate, Buffer: burst, Cbuffer: burst}
}()

// classCeiling returns the ceiling of a group's class.
func (b builder) classCeiling(ceiling unit.Rate) unit.Rate {
	if ceiling == b.tree.Limit {
		return ceiling
	}
	return ceiling - ceiling/classifier.CeilingReserveDivisor
}

// keepCredit enlarges the burst of a ceiling below the limit by what the class misses while all others at its level and at the levels
// above have their turns; parent is its parent group, or -1. Credit beyond the burst is lost: with burstTime, incoming TCP in a group
// with a ceiling of 12 Mbit/s had 9.5 Mbit/s beside three busy groups, and has 11.9. The burst is no longer than a round of turns,
// because it queues in the real link behind.
func (b builder) keepCredit(c *nl.HTBClass, parent int) {
	if c.Ceil >= b.tree.Limit.BytesPerSecond() {
		return
	}
	turns := b.rounds[-1]
	for ; parent >= 0; parent = b.tree.Nodes[parent].Parent {
		turns += b.rounds[parent]
	}
	c.Cbuffer += nl.BufferTicks(uint64(float64(c.Ceil)*min(turns, turnTime)), c.Ceil)
}

// nest adapts the class of a group to its parent group.
func (b builder) nest(c *nl.HTBClass, n group.Node) {
	c.Buffer = max(c.Buffer, nl.BufferTicks(uint64(float64(c.Rate)*turnTime), c.Rate))
	if n.Ceiling == b.tree.Nodes[n.Parent].Ceiling { // the outer class enforces the ceiling
		c.Ceil, c.Cbuffer = unlimitedClass.Ceil, unlimitedClass.Cbuffer
	}
}

// control returns the class of control traffic. Its bursts are as large as the budgets that the
// classifier enforces, so that control traffic never waits, even if guarantees use the rest.
// Packets that reach it without classification are limited to the same rates.
func (b builder) control() nl.HTBClass {
	limit := b.tree.Limit
	c := b.class(float64(limit/controlPart), limit/controlCeiling)
	c.Quantum = uint32(b.maxPacket(limit))
	burst := max((limit/controlPart).BytesPerSecond()*classifier.ControlTime, b.burst(c.Ceil, limit))
	c.Buffer, c.Cbuffer = nl.BufferTicks(burst, c.Rate), nl.BufferTicks(burst, c.Ceil)
	return c
}

// above returns the ceiling that a group shares with the borrowers of its parent, and the rate at which its turn may come: that of the parent's guarantee.
func (b builder) above(n group.Node) (ceiling, rate unit.Rate) {
	if n.Parent < 0 {
		return b.tree.Limit, b.tree.Limit
	}
	return b.tree.Nodes[n.Parent].Ceiling, b.tree.Nodes[n.Parent].Guarantee
}

// quantum returns the number of bytes that a group sends per turn among the borrowers of its
// parent. With quanta below one packet, turns would be counted in packets: measured were 34.9
// to 60.7 instead of 19.1 to 76.5.
func (b builder) quantum(n group.Node) uint64 {
	ceiling, rate := b.above(n)
	// All groups use the same unit, whatever packets they pass.
	unitQuantum := b.maxPacket(ceiling)
	if b.tree.Spare != group.Proportional {
		return unitQuantum
	}
	// If weights differ too much, the groups with the lowest get more than their part; the
	// others are in proportion. A group without guarantee has a thousandth of the limit, and
	// the default group is often one.
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
