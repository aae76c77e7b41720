package nl

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Handle is a traffic-control handle: the major number in the upper 16 bits and the minor number in
// the lower.
type Handle uint32

// MakeHandle combines a major and a minor number.
func MakeHandle(major, minor uint16) Handle { return Handle(major)<<16 | Handle(minor) }

// Major returns the upper half.
func (h Handle) Major() uint16 { return uint16(h >> 16) }

// Minor returns the lower half.
func (h Handle) Minor() uint16 { return uint16(h) }

// String returns tc's hexadecimal notation: "4847:10".
func (h Handle) String() string { return fmt.Sprintf("%x:%x", h.Major(), h.Minor()) }

// Well-known parents (uapi/linux/pkt_sched.h).
const (
	Root          Handle = 0xFFFFFFFF
	Clsact        Handle = 0xFFFFFFF1
	ClsactHandle  Handle = 0xFFFF0000
	ClsactIngress Handle = 0xFFFFFFF2
	ClsactEgress  Handle = 0xFFFFFFF3
)

// TC is the fixed part of a traffic-control message (struct tcmsg).
type TC struct {
	Ifindex int
	Handle  Handle
	Parent  Handle
	Info    uint32
}

const tcLen = 20

func (t TC) bytes() []byte {
	b := make([]byte, tcLen, 256)
	binary.NativeEndian.PutUint32(b[4:], uint32(int32(t.Ifindex)))
	binary.NativeEndian.PutUint32(b[8:], uint32(t.Handle))
	binary.NativeEndian.PutUint32(b[12:], uint32(t.Parent))
	binary.NativeEndian.PutUint32(b[16:], t.Info)
	return b
}

// Attribute types that golang.org/x/sys/unix lacks (uapi/linux/rtnetlink.h).
const (
	tcaIngressBlock = 13
	tcaEgressBlock  = 14
)

// Object is a qdisc, class or filter as the kernel reports it.
type Object struct {
	TC
	Kind    string
	Options []byte // TCA_OPTIONS, not decoded
	Stats   Stats
	// IngressBlock and EgressBlock are the shared blocks of a clsact's hooks, or 0. Such a hook
	// uses the filters of its block and accepts none of its own, and a dump of the block names no
	// device (net/sched/cls_api.c, TCM_IFINDEX_MAGIC_BLOCK).
	IngressBlock, EgressBlock uint32
}

// Stats are the generic counters of a qdisc or class (TCA_STATS2).
type Stats struct {
	Bytes, Packets         uint64
	Drops, Overlimits      uint64
	BacklogBytes, QueueLen uint64
}

// ParseObject parses a message of a dump.
func ParseObject(b []byte) (Object, error) {
	var o Object
	if len(b) < tcLen {
		return o, fmt.Errorf("traffic-control message of %d bytes is too short", len(b))
	}
	o.Ifindex = int(int32(binary.NativeEndian.Uint32(b[4:])))
	o.Handle = Handle(binary.NativeEndian.Uint32(b[8:]))
	o.Parent = Handle(binary.NativeEndian.Uint32(b[12:]))
	o.Info = binary.NativeEndian.Uint32(b[16:])
	ad, err := netlink.NewAttributeDecoder(b[tcLen:])
	if err != nil {
		return o, err
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.TCA_KIND:
			o.Kind = ad.String()
		case unix.TCA_OPTIONS:
			o.Options = ad.Bytes()
		case unix.TCA_STATS2:
			ad.Nested(o.Stats.decode)
		case tcaIngressBlock:
			o.IngressBlock = ad.Uint32()
		case tcaEgressBlock:
			o.EgressBlock = ad.Uint32()
		}
	}
	return o, ad.Err()
}

// Attribute types inside TCA_STATS2 (uapi/linux/gen_stats.h).
const (
	statsBasic = 1
	statsQueue = 3
	statsPkt64 = 8
)

func (s *Stats) decode(ad *netlink.AttributeDecoder) error {
	for ad.Next() {
		b := ad.Bytes()
		switch {
		case ad.Type() == statsBasic && len(b) >= 12:
			s.Bytes = binary.NativeEndian.Uint64(b)
			if s.Packets == 0 {
				s.Packets = uint64(binary.NativeEndian.Uint32(b[8:]))
			}
		case ad.Type() == statsPkt64 && len(b) >= 8:
			s.Packets = binary.NativeEndian.Uint64(b)
		case ad.Type() == statsQueue && len(b) >= 20:
			s.QueueLen = uint64(binary.NativeEndian.Uint32(b))
			s.BacklogBytes = uint64(binary.NativeEndian.Uint32(b[4:]))
			s.Drops = uint64(binary.NativeEndian.Uint32(b[8:]))
			s.Overlimits = uint64(binary.NativeEndian.Uint32(b[16:]))
		}
	}
	return nil
}

// Objects lists the qdiscs, classes or filters (an RTM_GET… type) that t selects.
func (c *Conn) Objects(what string, typ uint16, t TC) ([]Object, error) {
	msgs, err := c.Dump(what, typ, t.bytes())
	if err != nil {
		return nil, err
	}
	out := make([]Object, 0, len(msgs))
	for _, m := range msgs {
		o, err := ParseObject(m)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", what, err)
		}
		if t.Ifindex == 0 || o.Ifindex == t.Ifindex {
			out = append(out, o)
		}
	}
	return out, nil
}

// ticks converts nanoseconds to the kernel's scheduler ticks of 64 ns
// (include/net/pkt_sched.h, PSCHED_SHIFT).
func ticks(ns uint64) uint32 { return uint32(min(ns>>6, math.MaxUint32)) }
