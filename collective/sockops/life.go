package sockops

import (
	"net/netip"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"headgate.dev/headgate/collective"
)

// life is struct life of slot.h, member by member (TestLife checks that).
type life struct {
	Cookie, BegunNs, EndedNs uint64
	Acked                    uint64
	Slot, Set                uint32
	Passive, Asked           uint32
	LocalPort, RemotePort    uint32
	Local, Remote            [4]uint32
}

// Ended is a connection that has ended, or has moved to another set.
type Ended struct {
	Set uint32
	ID  collective.ID
	// Complete is set if the following is known.
	Complete        bool
	Passive, Joined bool
	Local, Remote   netip.AddrPort
	// Acked is what it carried in bytes, 0 if it was not watched from its beginning.
	Acked uint64
}

// openLives opens the ring of beginnings and ends, and drops what came before.
func (t *Table) openLives() (err error) {
	if t.reader, err = ringbuf.NewReader(t.lives); err != nil {
		return err
	}
	t.reader.SetDeadline(time.Unix(1, 0)) // never wait
	t.eachLife(func(*life) {})
	return nil
}

// eachLife calls do for what has begun or ended since the last call.
func (t *Table) eachLife(do func(*life)) {
	for t.reader.AvailableBytes() > 0 {
		if t.reader.ReadInto(&t.record) != nil || len(t.record.RawSample) < int(unsafe.Sizeof(life{})) {
			return
		}
		do((*life)(unsafe.Pointer(unsafe.SliceData(t.record.RawSample))))
	}
}

// readLives notes where connections have begun, and calls ended for those that have ended.
func (t *Table) readLives(ended func(Ended)) {
	t.eachLife(func(l *life) {
		if l.EndedNs == 0 {
			t.fresh = append(t.fresh, int(l.Slot))
			return
		}
		if w := &t.slotStates[l.Slot]; w.id == collective.ID(l.Cookie) && w.begun == l.BegunNs {
			*w = slotState{hot: w.hot}
		}
		ended(Ended{
			Set: l.Set, ID: collective.ID(l.Cookie), Complete: true, Passive: l.Passive != 0, Joined: l.Asked != 0,
			Local: address(l.Local, l.LocalPort), Remote: address(l.Remote, l.RemotePort), Acked: l.Acked,
		})
	})
}
