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

// FQCodelKind is the name of the qdisc kind.
const FQCodelKind = "fq_codel"

// FQCodel has the parameters of a queue that isolates flows and limits the delay of each
// (net/sched/sch_fq_codel.c), with the kernel's precision.
type FQCodel struct {
	Packets   uint32    // maximum number of packets in the queue
	Memory    uint32    // maximum memory of the queue in bytes (truesize, not length)
	Flows     uint32    // number of queues to which flows are hashed; fixed at creation
	Quantum   uint32    // bytes that a flow sends per turn
	DropBatch uint32    // maximum number of packets dropped at once when the queue is full
	Target    CoDelTime // sojourn time that a flow may exceed for up to Interval
	Interval  CoDelTime
	ECN       bool // marks ECN-capable packets instead of dropping them
}

// CoDelTime is a time in CoDel's units of 1,024 ns (include/net/codel.h, CODEL_SHIFT). Netlink uses
// microseconds, and both conversions round down.
type CoDelTime uint32

// ToCoDelTime converts a duration to CoDel's units.
func ToCoDelTime(d time.Duration) CoDelTime { return CoDelTime(d >> 10) }

// Duration converts the time to a duration.
func (t CoDelTime) Duration() time.Duration { return time.Duration(t) << 10 }

// microseconds returns the value that the kernel converts to t. fromMicroseconds returns the time
// of a value that the kernel reports.
func (t CoDelTime) microseconds() uint32 { return uint32((uint64(t)<<10 + 999) / 1000) }

func fromMicroseconds(us uint32) CoDelTime { return CoDelTime((uint64(us)*1000 + 1023) >> 10) }

// SetFQCodel creates an fq_codel qdisc, or changes the present one, which must have the same number
// of flows: this number is fixed at creation.
func (b *Batch) SetFQCodel(ifindex int, handle, parent Handle, q FQCodel, fresh bool) {
	b.tc(requestDescription{"set the fq_codel queue of", parent}, unix.RTM_NEWQDISC, netlink.Create|netlink.Replace,
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

// FQCodel parses the parameters from a dump. It returns false if the qdisc is of another kind, or
// has a CE threshold, which Headgate never sets and no request can remove.
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

// loopback is the index of lo in every network namespace (drivers/net/loopback.c).
const loopback = 1

// SupportsFQCodel reports whether the kernel has fq_codel, or a module of it to load. It requests an
// fq_codel qdisc without flows on the loopback device, which is invalid. A kernel without fq_codel
// returns ENOENT before it validates the parameters (net/sched/sch_api.c, qdisc_create).
func (c *Conn) SupportsFQCodel() bool {
	var b Batch
	b.SetFQCodel(loopback, 0, Root, FQCodel{}, true)
	err := c.Execute(&b)
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE)
}
