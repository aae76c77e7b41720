package sockops

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"reflect"
	"sync/atomic"
	"unsafe"
)

// slot is struct slot of slot.h, member by member (TestSlot checks that).
type slot struct {
	Cookie, Count, BegunNs, SeenNs, Acked, RttSumUs, ResentNs uint64
	RecoveryNs                                                uint64
	Rtts, RttUs, NewestUs, SrttUs, LeastUs                    uint32
	Cwnd, Ssthresh                                            uint32
	Mss, Backlog                                              uint32
	Retransmits, Segments, DeliveredCe                        uint32
	Timeouts, Resent, Marked                                  uint32
	Paced, Clamped                                            uint32
	ReceiverFull, Set, Level, Passive                         uint32
	LocalPort, RemotePort, Recovery                           uint32
	Local, Remote                                             [4]uint32

	Owner, LeaseUntilNs   uint64
	Pace, Window, Version uint32
	Asked                 uint32
	Weight                float64
	LossNs                uint64
	LossEnd, Lost, Reno   uint32
	_                     uint32
}

// The values of Asked: ASKED and ASKED_NOW in slot.h.
const joined, joining uint32 = 1, 2

// layout returns a number that differs between builds with different slots.
func layout() uint64 {
	hash := fnv.New64a()
	for _, of := range []reflect.Type{reflect.TypeFor[slot](), reflect.TypeFor[socketData]()} {
		for _, f := range reflect.VisibleFields(of) {
			fmt.Fprintln(hash, f.Name, f.Offset, f.Type)
		}
	}
	return hash.Sum64()
}

// snapshot copies the kernel's part consistently; ok is false if the slot is free.
func (s *slot) snapshot() (c slot, ok bool) {
	for range snapshotTries {
		before := atomic.LoadUint64(&s.Count)
		c = *s
		if before%2 == 0 && before == atomic.LoadUint64(&s.Count) {
			return c, c.Cookie != 0
		}
	}
	return c, false
}

// snapshotTries is large because a callback takes less than a microsecond.
const snapshotTries = 1000

func (s *slot) local() netip.AddrPort  { return address(s.Local, s.LocalPort) }
func (s *slot) remote() netip.AddrPort { return address(s.Remote, s.RemotePort) }

// address converts four words in network byte order.
func address(words [4]uint32, port uint32) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&words))).Unmap(), uint16(port))
}
