package htb

import (
	"fmt"
	"math"
	"strings"
	"time"

	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/unit"
)

// leaf is the queue at the end of a class: one FIFO, which may split
// super-packets, or a queue for each flow, behind a FIFO's place if that splits.
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

// bounded is how much of a FIFO the classifier fills (bpf/bound.h).
func (l leaf) bounded() uint32 { return uint32(float64(l.fifo.Limit) / slack) }

// kind is the kind of the class's own qdisc.
func (l leaf) kind() string {
	if l.fifo == (nl.Leaf{}) {
		return nl.FQCodelKind
	}
	return l.fifo.Kind()
}

// behind tells whether the flows' queues are a child of the class's own qdisc.
func (l leaf) behind() bool { return l.flows.Flows > 0 && l.fifo.Segment > 0 }

// Bounds of a leaf and the numbers of fq_codel, with what they rest on
// (docs/decisions/0010-fq-codel-leaves.md).
const (
	// queueTime bounds the wait in a full queue of a group that has its ceiling. One
	// that has less is bounded by the rate that it has: by fq_codel, or by the
	// classifier (bpf/bound.h).
	queueTime = 0.020
	// writeBytes is the least queue: what a program writes at once, and its headers, of
	// which nothing may be lost if it fits the group's rate in the end. Programs that
	// copy files or answer requests write up to 256 KiB.
	writeBytes = 320 * 1024
	// queuePackets is the least queue of large frames.
	queuePackets = 16
	// slack is how much longer a FIFO is than what the classifier lets wait: what the FIFO
	// drops the classifier would take for what waits.
	slack = 1.125
	// memoryOf: fq_codel bounds memory, not length. A frame of 1,514 bytes takes
	// 2,304 (2,048 and the skb's own 256), a super-packet hardly more than itself.
	memoryOfFrames = 1.5
	// flowQueueCount is in how many queues a group's flows are kept apart. They
	// take 68 bytes each: 17 KB a leaf, 139 MB for 4,000 groups in two directions,
	// where the kernel's own 1,024 take 557 MB.
	flowQueueCount = 256
	// leastPacket is the shortest Ethernet frame without its checksum: fq_codel's
	// limit in packets is never the one that binds.
	leastPacket = 60
	// codelTarget and codelInterval are RFC 8289's (4.2, 4.3). A flow may keep two
	// packets at the guarantee, and the interval grows by what the target does, as
	// sqm-scripts has it (src/functions.sh, adapt_interval_to_slow_link).
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
	targetPackets = 2
	// targetMost: of a group that is owed next to nothing. CoDel's clock of 32 bits
	// goes to half an hour.
	targetMost = time.Second
)

// leaf is the queue of a class: bounded in time, in bytes.
func (b builder) leaf(guarantee, ceiling unit.Rate) leaf {
	limit := max(float64(ceiling.BytesPerSecond())*queueTime, writeBytes, float64(queuePackets*b.link.frame()))
	whole := b.whole(ceiling)
	if whole == 0 {
		if b.link.flowQueues {
			return leaf{flows: b.flows(limit, guarantee, ceiling)}
		}
		return leaf{fifo: nl.Leaf{Limit: bytes32(limit * slack)}}
	}
	// With flows behind it the limit of the FIFO's place is what holds if the
	// kernel has no memory for them.
	l := leaf{fifo: nl.Leaf{Limit: bytes32(limit * slack), Segment: uint32(whole)}}
	if b.link.flowQueues {
		l.flows = b.flows(limit*memoryOfFrames, guarantee, ceiling)
	}
	return l
}

// flows keeps a group's flows apart in so much memory. ECN is a backstop: our own
// marker keeps queues below the target (bpf/queue.h).
func (b builder) flows(memory float64, guarantee, ceiling unit.Rate) nl.FQCodel {
	rate := guarantee
	if rate == 0 {
		rate = ceiling
	}
	packets := float64(targetPackets*b.link.frame()) / float64(max(rate.BytesPerSecond(), 1)) * float64(time.Second)
	target := max(codelTarget, time.Duration(min(packets, float64(targetMost))))
	return nl.FQCodel{
		Packets: bytes32(memory / leastPacket), Memory: bytes32(memory), Flows: flowQueueCount,
		Quantum: uint32(b.link.frame()), // in turns of one packet
		// More would cost one connection much, to save the kernel a look at 256 lengths.
		DropBatch: 1,
		Target:    nl.ToCoDelTime(target), Interval: nl.ToCoDelTime(codelInterval + target - codelTarget), ECN: true,
	}
}

// bytes32 is n, or the most that the kernel takes (fq_codel: 2 GB).
func bytes32(n float64) uint32 { return uint32(min(n, math.MaxInt32)) }

// foundLeaf is a leaf as the kernel has it.
type foundLeaf struct {
	leaf
	handle nl.Handle // of the class's own qdisc
	parent nl.Handle // the class
	top    string    // its kind
	child  string    // the kind of what is behind it, "" if nothing
	known  bool      // kinds, options and handles are such as we make
	stats  nl.Stats
}

// readLeaf reads a class's own qdisc.
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

// readChild reads what is behind it. What the child drops its parent counts too,
// but some of it late (sch_fq_codel.c, fq_codel_dequeue), and of segments older
// kernels' TBF miscounts the backlog.
func (f *foundLeaf) readChild(q nl.Object) {
	flows, ours := q.FQCodel()
	f.child = q.Kind
	f.flows, f.known = flows, f.known && ours && q.Handle == behindHandle(f.handle)
	f.stats.Drops = max(f.stats.Drops, q.Stats.Drops)
	f.stats.BacklogBytes = q.Stats.BacklogBytes
}

func (f foundLeaf) String() string {
	if !f.known {
		return strings.TrimSpace(f.top + " " + f.child)
	}
	return f.leaf.String()
}

// becomes tells whether the kernel can make l of it in place: it changes no kind,
// moves no qdisc, and gives an fq_codel no other number of flows.
func (f foundLeaf) becomes(l leaf) bool {
	switch {
	case !f.known || f.top != l.kind():
		return false
	case f.child != "" && !l.behind():
		return false
	case f.flows.Flows > 0:
		return f.flows.Flows == l.flows.Flows
	}
	return true
}

// leafStep makes the leaf of a class what it should be. What cannot be changed in
// place is taken away first, with the packets that are in it; for the moment
// between the two requests of one message HTB has a FIFO of its own.
func leafStep(object string, c class, have tree) (step, bool) {
	old, exists := have.leaves[c.minor]
	own, parent := leafHandle(c.minor), c.handle()
	stays := exists && old.parent == parent // else it was a client's of another group
	if !c.leaf || stays && old.known && old.leaf == c.queue {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) {
		if exists && !(stays && old.becomes(c.queue)) {
			b.DeleteQdisc(ifindex, old.handle, old.parent)
			old = foundLeaf{}
		}
		if c.queue.fifo != old.fifo {
			b.SetLeaf(ifindex, own, parent, c.queue.fifo)
		}
		if c.queue.flows != old.flows {
			handle, parent := own, parent
			if c.queue.behind() {
				handle, parent = behindHandle(own), own|1
			}
			b.SetFQCodel(ifindex, handle, parent, c.queue.flows, old.flows.Flows == 0)
		}
	}}
	was := "none"
	if exists {
		was = old.String()
	}
	if _, made := have.classes[c.minor]; made && c.client <= 1 { // else the queue was named with its class
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "change", Object: object, Detail: fmt.Sprintf("queue %s -> %v", was, c.queue)}
		}
	}
	return s, true
}
