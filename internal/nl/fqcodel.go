package nl

import (
	"errors"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attribute types of fq_codel (uapi/linux/pkt_sched.h).
const (
	fqTarget      = 1
	fqLimit       = 2
	fqInterval    = 3
	fqECN         = 4
	fqFlows       = 5
	fqQuantum     = 6
	fqCEThreshold = 7
	fqDropBatch   = 8
	fqMemory      = 9
)

// FQCodelKind is the kind's name.
const FQCodelKind = "fq_codel"

// FQCodel is a queue that keeps flows apart and each of them short
// (net/sched/sch_fq_codel.c), as exactly as the kernel keeps it.
type FQCodel struct {
	Packets   uint32    // the most it holds
	Memory    uint32    // bytes of memory (truesize, not length) of the most it holds
	Flows     uint32    // queues that flows are spread over by their hash; fixed once it is made
	Quantum   uint32    // bytes a flow sends in its turn
	DropBatch uint32    // the most that is dropped at once when it is full
	Target    CoDelTime // the wait that a flow may have for longer than Interval
	Interval  CoDelTime
	ECN       bool // marks rather than drops what can be marked
}

// CoDelTime is a time in CoDel's units of 1,024 ns (include/net/codel.h,
// CODEL_SHIFT). On the wire it is in microseconds, and both ways round down.
type CoDelTime uint32

// ToCoDelTime gives the time in CoDel's units.
func ToCoDelTime(d time.Duration) CoDelTime { return CoDelTime(d >> 10) }

// Duration is the time.
func (t CoDelTime) Duration() time.Duration { return time.Duration(t) << 10 }

// microseconds is what the kernel makes t of, and fromMicroseconds t of what it
// says.
func (t CoDelTime) microseconds() uint32 { return uint32((uint64(t)<<10 + 999) / 1000) }

func fromMicroseconds(us uint32) CoDelTime { return CoDelTime((uint64(us)*1000 + 1023) >> 10) }

// SetFQCodel makes an fq_codel qdisc, or changes the one that is there, whose
// number of flows must be the same: only a new one can be given another.
func (b *Batch) SetFQCodel(ifindex int, handle, parent Handle, q FQCodel, fresh bool) {
	b.tc(task{"set the fq_codel queue of", parent}, unix.RTM_NEWQDISC, netlink.Create|netlink.Replace,
		TC{Ifindex: ifindex, Handle: handle, Parent: parent}, FQCodelKind, func(ae *netlink.AttributeEncoder) {
			if fresh {
				ae.Uint32(fqFlows, q.Flows)
			}
			ae.Uint32(fqLimit, q.Packets)
			ae.Uint32(fqMemory, q.Memory)
			ae.Uint32(fqQuantum, q.Quantum)
			ae.Uint32(fqDropBatch, q.DropBatch)
			ae.Uint32(fqTarget, q.Target.microseconds())
			ae.Uint32(fqInterval, q.Interval.microseconds())
			ecn := uint32(0)
			if q.ECN {
				ecn = 1
			}
			ae.Uint32(fqECN, ecn)
		})
}

// FQCodel reads the parameters from a dump, and false if the qdisc is of another
// kind or has one that we never set and that no request can take away.
func (o Object) FQCodel() (FQCodel, bool) {
	var q FQCodel
	ad, err := netlink.NewAttributeDecoder(o.Options)
	if o.Kind != FQCodelKind || err != nil {
		return q, false
	}
	ours := true
	for ad.Next() {
		switch ad.Type() {
		case fqTarget:
			q.Target = fromMicroseconds(ad.Uint32())
		case fqLimit:
			q.Packets = ad.Uint32()
		case fqInterval:
			q.Interval = fromMicroseconds(ad.Uint32())
		case fqECN:
			q.ECN = ad.Uint32() != 0
		case fqFlows:
			q.Flows = ad.Uint32()
		case fqQuantum:
			q.Quantum = ad.Uint32()
		case fqDropBatch:
			q.DropBatch = ad.Uint32()
		case fqMemory:
			q.Memory = ad.Uint32()
		case fqCEThreshold:
			ours = false
		}
	}
	return q, ours && ad.Err() == nil
}

// loopback is lo's index in every network namespace (drivers/net/loopback.c).
const loopback = 1

// HasFQCodel tells whether the kernel has fq_codel, or a module of it to load: it
// asks for one on the loopback device that cannot be made, because it has no
// flows. A kernel without says ENOENT before it looks at what was asked
// (net/sched/sch_api.c, qdisc_create).
func (c *Conn) HasFQCodel() bool {
	var b Batch
	b.SetFQCodel(loopback, 0, Root, FQCodel{}, true)
	err := c.Execute(&b)
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE)
}
