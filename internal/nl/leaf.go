package nl

import (
	"encoding/binary"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attribute types of TBF (uapi/linux/pkt_sched.h).
const (
	tbfParms  = 1
	tbfRate64 = 4
	tbfBurst  = 6
)

// segmenterRate is so high that the bucket is full again before the next dequeue: 64 KB take 53 ns.
// So a TBF leaf never throttles HTB (net/sched/sch_htb.c warns of a leaf that is not
// work-conserving); the leaf is used for tbf_segment only.
const segmenterRate = 10e12 / 8

// Leaf is the queue of a leaf class: a FIFO of Limit bytes, which splits super-packets larger than
// Segment bytes if Segment is not 0.
type Leaf struct {
	Limit   uint32
	Segment uint32
}

// Kind returns the kind of the qdisc for the leaf.
func (l Leaf) Kind() string {
	if l.Segment > 0 {
		return "tbf"
	}
	return "bfifo"
}

// SetLeaf creates or changes the leaf qdisc of a class. A leaf of another kind is replaced, and the
// packets in it are lost.
func (b *Batch) SetLeaf(ifindex int, handle, class Handle, l Leaf) {
	tc := TC{Ifindex: ifindex, Handle: handle, Parent: class}
	what := requestDescription{"set the queue of class", class}
	limit := make([]byte, 4)
	binary.NativeEndian.PutUint32(limit, l.Limit)
	if l.Segment == 0 {
		b.tcRaw(what, unix.RTM_NEWQDISC, netlink.Create|netlink.Replace, tc, "bfifo", limit)
		return
	}
	parms := make([]byte, 36)
	parms[1] = linklayerEthernet
	binary.NativeEndian.PutUint32(parms[8:], math.MaxUint32)
	copy(parms[24:], limit)
	// Without a peak rate the kernel stores the field "mtu" and does not use it. The segment size
	// is stored there so that it can be read back, because TBF does not dump it.
	binary.NativeEndian.PutUint32(parms[32:], l.Segment)
	b.tc(what, unix.RTM_NEWQDISC, netlink.Create|netlink.Replace, tc, "tbf", func(ae *netlink.AttributeEncoder) {
		ae.Bytes(tbfParms, parms)
		ae.Uint64(tbfRate64, segmenterRate)
		ae.Uint32(tbfBurst, l.Segment)
	})
}

// Leaf parses a leaf qdisc from a dump. It returns false if the qdisc is of another kind.
func (o Object) Leaf() (Leaf, bool) {
	switch o.Kind {
	case "bfifo":
		if len(o.Options) < 4 {
			return Leaf{}, false
		}
		return Leaf{Limit: binary.NativeEndian.Uint32(o.Options)}, true
	case "tbf":
		ad, err := netlink.NewAttributeDecoder(o.Options)
		if err != nil {
			return Leaf{}, false
		}
		for ad.Next() {
			if p := ad.Bytes(); ad.Type() == tbfParms && len(p) >= 36 {
				return Leaf{Limit: binary.NativeEndian.Uint32(p[24:]), Segment: binary.NativeEndian.Uint32(p[32:])}, true
			}
		}
	}
	return Leaf{}, false
}
