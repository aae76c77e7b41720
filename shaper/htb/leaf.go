package htb

import (
	"fmt"
	"math"
	"strings"
	"time"

	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// leaf is the queue of a leaf class: one FIFO, which may split super-packets, or a queue per
// flow, which is below the FIFO's qdisc if that splits.
type leaf struct {
	fifo  nl.Leaf    // its zero value: none
	flows nl.FQCodel // its zero value: none
}

func (l leaf) String() string {
	if l.flows.Flows > 0 {
		return fmt.Sprintf("%s of %v", nl.FQCodelKind, unit.Bytes(l.flows.Memory))
	}
	return unit.Bytes(l.fifo.Limit).String()
}

// fillLimit returns the number of bytes up to which the classifier fills a FIFO (bpf/bound.h).
func (l leaf) fillLimit() uint32 { return uint32(float64(l.fifo.Limit) / slack) }

// kind returns the kind of the class's own qdisc.
func (l leaf) kind() string {
	if l.fifo == (nl.Leaf{}) {
		return nl.FQCodelKind
	}
	return l.fifo.Kind()
}

// flowsAreChild reports whether the flow queues are in a child of the class's own qdisc.
func (l leaf) flowsAreChild() bool { return l.flows.Flows > 0 && l.fifo.Segment > 0 }

// Limits of a leaf and parameters of fq_codel, with their reasons
// (docs/decisions/0010-fq-codel-leaves.md).
const (
	// queueTime limits the delay of a full queue at the ceiling. At a lower rate, the delay is
	// limited by fq_codel, or by the classifier (bpf/bound.h).
	queueTime = 0.020
	// writeBytes is the minimum queue: a single write of a program with its headers, of which
	// no packet may be lost if it fits the group's rate in the end. Programs that copy files or
	// answer requests write up to 256 KiB.
	writeBytes = 320 * 1024
	// queuePackets is the minimum queue in large frames.
	queuePackets = 16
	// slack is the ratio of a FIFO's length to the length up to which the classifier fills it.
	// The classifier would count packets that the FIFO drops as waiting.
	slack = 1.125
	// memoryOfFrames is the memory per byte of frames: fq_codel limits memory, not length. A
	// frame of 1,514 bytes takes 2,304 (2,048 and the skb's 256); a super-packet takes hardly
	// more than its length.
	memoryOfFrames = 1.5
	// flowQueueCount is the number of queues among which a group's flows are distributed. Each
	// takes 68 bytes: 17 KB per leaf, 139 MB for 4,000 groups in two directions; the kernel's
	// default of 1,024 queues takes 557 MB.
	flowQueueCount = 256
	// leastPacket is the minimum Ethernet frame without its checksum. With it, fq_codel's limit
	// in packets is never reached.
	leastPacket = 60
	// codelTarget and codelInterval are those of RFC 8289 (4.2, 4.3). A flow may queue two
	// packets at the guarantee, and the interval grows by as much as the target, as in
	// sqm-scripts (src/functions.sh, adapt_interval_to_slow_link).
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
	targetPackets = 2
	// targetMost is the maximum target, for groups with hardly any guarantee. CoDel's 32-bit
	// clock covers half an hour.
	targetMost = time.Second
)

// leaf returns the queue of a class, limited in time by its length in bytes.
func (b builder) leaf(guarantee, ceiling unit.Rate) leaf {
	return b.leafOf(guarantee, ceiling, b.maxUnsplit(ceiling))
}

// leafOf is leaf for a leaf that passes packets of up to whole bytes unsplit; 0 means any.
func (b builder) leafOf(guarantee, ceiling unit.Rate, whole uint64) leaf {
	limit := max(float64(ceiling.BytesPerSecond())*queueTime, writeBytes, float64(queuePackets*b.link.frame()))
	if whole == 0 {
		if b.link.flowQueues {
			return leaf{flows: b.flows(limit, guarantee, ceiling)}
		}
		return leaf{fifo: nl.Leaf{Limit: bytes32(limit * slack)}}
	}
	// With flow queues below it, the FIFO's limit applies only if the kernel cannot allocate
	// memory for them.
	l := leaf{fifo: nl.Leaf{Limit: bytes32(limit * slack), Segment: uint32(whole)}}
	if b.link.flowQueues {
		l.flows = b.flows(limit*memoryOfFrames, guarantee, ceiling)
	}
	return l
}

// flows returns an fq_codel with an amount of memory. ECN is a backstop: Headgate's marker
// keeps queues below the target (bpf/queue.h).
func (b builder) flows(memory float64, guarantee, ceiling unit.Rate) nl.FQCodel {
	rate := guarantee
	if rate == 0 {
		rate = ceiling
	}
	packets := float64(targetPackets*b.link.frame()) / float64(max(rate.BytesPerSecond(), 1)) * float64(time.Second)
	target := max(codelTarget, time.Duration(min(packets, float64(targetMost))))
	return nl.FQCodel{
		Packets: bytes32(memory / leastPacket), Memory: bytes32(memory), Flows: flowQueueCount,
		Quantum: uint32(b.link.frame()), // turns of one packet
		// A larger batch would hurt single connections, and save the kernel only a scan of 256
		// lengths.
		DropBatch: 1,
		Target:    nl.ToCoDelTime(target), Interval: nl.ToCoDelTime(codelInterval + target - codelTarget), ECN: true,
	}
}

// bytes32 returns n, or the maximum that the kernel accepts (fq_codel: 2 GB).
func bytes32(n float64) uint32 { return uint32(min(n, math.MaxInt32)) }

// foundLeaf is the actual state of a leaf.
type foundLeaf struct {
	leaf
	handle nl.Handle // of the class's own qdisc
	parent nl.Handle // the class
	top    string    // the kind of the class's own qdisc
	child  string    // the kind of the qdisc below it, "" if there is none
	known  bool      // kinds, options and handles are those that Headgate creates
	stats  nl.Stats
}

// readLeaf parses a class's own qdisc.
func readLeaf(q nl.Object) foundLeaf {
	f := foundLeaf{handle: q.Handle, parent: q.Parent, top: q.Kind, stats: q.Stats}
	if q.Kind == nl.FQCodelKind {
		f.flows, f.known = q.FQCodel()
	} else {
		f.fifo, f.known = q.Leaf()
	}
	f.known = f.known && q.Handle == leafHandle(q.Parent.Minor())
	return f
}

// readChild parses the qdisc below it. The parent counts the drops of the child too, but some
// of them late (sch_fq_codel.c, fq_codel_dequeue), and TBF in older kernels miscounts the
// backlog of segments.
func (f *foundLeaf) readChild(q nl.Object) {
	flows, ours := q.FQCodel()
	f.child = q.Kind
	f.flows, f.known = flows, f.known && ours && q.Handle == childHandle(f.handle)
	f.stats.Drops = max(f.stats.Drops, q.Stats.Drops)
	f.stats.BacklogBytes = q.Stats.BacklogBytes
}

func (f foundLeaf) String() string {
	if !f.known {
		return strings.TrimSpace(f.top + " " + f.child)
	}
	return f.leaf.String()
}

// canChangeTo reports whether the kernel can change the leaf to l in place: this excludes changes
// of the kind, of the parent, and of an fq_codel's number of flows.
func (f foundLeaf) canChangeTo(l leaf) bool {
	switch {
	case !f.known || f.top != l.kind():
		return false
	case f.child != "" && !l.flowsAreChild():
		return false
	case f.flows.Flows > 0:
		return f.flows.Flows == l.flows.Flows
	}
	return true
}

// leafStep returns the step that makes a class's leaf the desired one. A leaf that cannot be
// changed in place is deleted first, with its packets; between the two requests of one message,
// HTB uses a FIFO of its own.
func leafStep(object string, c class, have tree) (step, bool) {
	old, exists := have.leaves[c.minor]
	own, parent := leafHandle(c.minor), c.handle()
	stays := exists && old.parent == parent // otherwise it was a client's leaf in another group
	if !c.leaf || stays && old.known && old.leaf == c.queue {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) {
		if exists && !(stays && old.canChangeTo(c.queue)) {
			b.DeleteQdisc(ifindex, old.handle, old.parent)
			old = foundLeaf{}
		}
		if c.queue.fifo != old.fifo {
			b.SetLeaf(ifindex, own, parent, c.queue.fifo)
		}
		if c.queue.flows != old.flows {
			handle, parent := own, parent
			if c.queue.flowsAreChild() {
				handle, parent = childHandle(own), own|1
			}
			b.SetFQCodel(ifindex, handle, parent, c.queue.flows, old.flows.Flows == 0)
		}
	}}
	was := "none"
	if exists {
		was = old.String()
	}
	if _, made := have.classes[c.minor]; made && c.client <= 1 { // otherwise the change of its class includes it
		s.derived = true
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: fmt.Sprintf("queue %s -> %v", was, c.queue)}
		}
	}
	return s, true
}
