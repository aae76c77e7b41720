package nl

import (
	"encoding/binary"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attribute types of HTB (uapi/linux/pkt_sched.h).
const (
	htbParms  = 1
	htbInit   = 2
	htbRate64 = 6
	htbCeil64 = 7
)

// HTBClass has the parameters of a class with the kernel's precision, so that written and read
// values are equal.
type HTBClass struct {
	Rate, Ceil        uint64 // bytes per second
	Buffer, Cbuffer   uint32 // size of the two buckets, at Rate and Ceil, in ticks of 64 ns
	Quantum           uint32 // bytes that a leaf sends per turn when it borrows
	Prio              uint32
	Overhead, Minimum uint16 // bytes added to each packet, and the minimum size that a packet counts as
}

// BufferTicks returns the size of a bucket in ticks, for size bytes that fill at rate bytes per
// second.
func BufferTicks(size, rate uint64) uint32 {
	if rate == 0 {
		return 0
	}
	return ticks(uint64(float64(size) * 1e9 / float64(rate)))
}

// AddHTB creates an HTB qdisc at parent, replacing the present one. Packets without a class go to
// defaultMinor; if that is 0, they are sent without a limit, before all others.
func (b *Batch) AddHTB(ifindex int, handle, parent Handle, defaultMinor uint16) {
	glob := make([]byte, 20)
	binary.NativeEndian.PutUint32(glob[0:], 3)  // HTB_VER of the wire format
	binary.NativeEndian.PutUint32(glob[4:], 10) // rate2quantum, unused: every class has its own quantum
	binary.NativeEndian.PutUint32(glob[8:], uint32(defaultMinor))
	flags := netlink.Create | netlink.Replace // replaces a class's own queue
	if parent == Root {
		flags = netlink.Create // does not replace a root qdisc that another program added meanwhile
	}
	b.tc(requestDescription{"create the HTB qdisc", handle}, unix.RTM_NEWQDISC, flags,
		TC{Ifindex: ifindex, Handle: handle, Parent: parent}, "htb", func(ae *netlink.AttributeEncoder) {
			ae.Bytes(htbInit, glob)
		})
}

// SetHTBClass creates or changes a class.
func (b *Batch) SetHTBClass(ifindex int, class, parent Handle, c HTBClass) {
	parms := make([]byte, 44)
	c.ratespec(parms[0:], c.Rate)
	c.ratespec(parms[12:], c.Ceil)
	binary.NativeEndian.PutUint32(parms[24:], c.Buffer)
	binary.NativeEndian.PutUint32(parms[28:], c.Cbuffer)
	binary.NativeEndian.PutUint32(parms[32:], c.Quantum)
	binary.NativeEndian.PutUint32(parms[40:], c.Prio)
	b.tc(requestDescription{"set the HTB class", class}, unix.RTM_NEWTCLASS, netlink.Create,
		TC{Ifindex: ifindex, Handle: class, Parent: parent}, "htb", func(ae *netlink.AttributeEncoder) {
			if c.Rate > math.MaxUint32 {
				ae.Uint64(htbRate64, c.Rate)
			}
			if c.Ceil > math.MaxUint32 {
				ae.Uint64(htbCeil64, c.Ceil)
			}
			ae.Bytes(htbParms, parms)
		})
}

func (c HTBClass) ratespec(b []byte, rate uint64) {
	b[1] = linklayerEthernet // without it the kernel requires tc's old rate tables
	binary.NativeEndian.PutUint16(b[2:], c.Overhead)
	binary.NativeEndian.PutUint16(b[6:], c.Minimum)
	binary.NativeEndian.PutUint32(b[8:], uint32(min(rate, math.MaxUint32)))
}

const linklayerEthernet = 1

// HTBClass parses the parameters of a class from a dump.
func (o Object) HTBClass() (HTBClass, error) {
	var c HTBClass
	ad, err := netlink.NewAttributeDecoder(o.Options)
	if err != nil {
		return c, err
	}
	for ad.Next() {
		switch p := ad.Bytes(); {
		case ad.Type() == htbParms && len(p) >= 44:
			c.Overhead = binary.NativeEndian.Uint16(p[2:])
			c.Minimum = binary.NativeEndian.Uint16(p[6:])
			c.Rate = max(c.Rate, uint64(binary.NativeEndian.Uint32(p[8:])))
			c.Ceil = max(c.Ceil, uint64(binary.NativeEndian.Uint32(p[20:])))
			c.Buffer = binary.NativeEndian.Uint32(p[24:])
			c.Cbuffer = binary.NativeEndian.Uint32(p[28:])
			c.Quantum = binary.NativeEndian.Uint32(p[32:])
			c.Prio = binary.NativeEndian.Uint32(p[40:])
		case ad.Type() == htbRate64 && len(p) == 8:
			c.Rate = max(c.Rate, binary.NativeEndian.Uint64(p))
		case ad.Type() == htbCeil64 && len(p) == 8:
			c.Ceil = max(c.Ceil, binary.NativeEndian.Uint64(p))
		}
	}
	return c, ad.Err()
}

// HTBDefault parses the minor number of the default class from a dumped root qdisc.
func (o Object) HTBDefault() (uint16, error) {
	ad, err := netlink.NewAttributeDecoder(o.Options)
	if err != nil {
		return 0, err
	}
	for ad.Next() {
		if p := ad.Bytes(); ad.Type() == htbInit && len(p) >= 12 {
			return uint16(binary.NativeEndian.Uint32(p[8:])), nil
		}
	}
	return 0, ad.Err()
}
