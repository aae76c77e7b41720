package sockops

import (
	"iter"
	"net/netip"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/collective"
)

// Connection is the state of a connection.
type Connection struct {
	collective.ID
	Set           uint32
	Passive       bool // it was accepted, not opened
	Local, Remote netip.AddrPort
	// Seen is the time of its last callback, on the clock of Now.
	Seen time.Duration
	// Rounds is the number of measured round trips, RTTSum their sum, RTT the newest one.
	Rounds      uint32
	RTT, RTTSum time.Duration
	// Newest is the round trip of the acknowledged packet that was sent last.
	Newest  time.Duration
	Acked   uint64 // bytes
	Backlog uint32 // bytes written and not sent
	// Window and Threshold (ssthresh) are in packets of at most Segment bytes.
	Window, Threshold, Segment uint32
	// Retransmits and Segments count packets.
	Retransmits, Segments uint32
	// Timeouts, Resent and Marked count events: expiries of the timer, other
	// retransmissions, and CE marks. Of a long recovery only the first round trip counts.
	Timeouts, Resent, Marked uint32
	// Reno is set if its congestion control is Reno.
	Reno bool
	// Lost is the number of packets that were found lost. LossAt is when the first of those was that were sent since the loss before.
	Lost   uint32
	LossAt time.Duration
	// Paced (bytes per second) and Clamped (packets) are the caps in force; 0 is none.
	Paced, Clamped uint32
	// ReceiverFull is set if the receiver's window has no room for another packet.
	ReceiverFull bool
	// Joined is set if the application added the connection to the set, with a configured
	// Weight or 0.
	Joined bool
	Weight float64

	slot int
}

// slotState is the state of a slot at the last look.
type slotState struct {
	id       collective.ID // 0 is a free slot
	begun    uint64        // a socket may connect again
	set      uint32
	notified bool // changed was called with this count
	count    uint64
	hot      int // remaining looks while it stays hot without a change
}

// staysHot is the number of looks for which a slot without a change is still looked at
// every time. Of the other slots each look checks scanPerLook, or a 64th of all if that is more,
// in turn.
const staysHot, scanPerLook = 100, 256

// Look calls changed for every connection with new data since the last look, and ended
// for every connection that has ended, also for one that changed was never called for.
// Without new data a connection has its turn later.
func (t *Table) Look(changed func(*Connection), ended func(Ended)) {
	if t.slotStates == nil {
		t.slotStates = make([]slotState, len(t.all))
	}
	t.readLives(ended)
	for _, i := range t.fresh {
		t.lookNext(i)
	}
	t.fresh = t.fresh[:0]
	still := t.hot[:0]
	for _, i := range t.hot {
		if t.look(i, changed, ended) {
			still = append(still, i)
		}
	}
	t.hot = still
	for range min(max(scanPerLook, len(t.all)/64), len(t.all)) {
		if t.slotStates[t.turn].hot == 0 && t.look(t.turn, changed, ended) {
			t.hot = append(t.hot, t.turn)
		}
		t.turn = (t.turn + 1) % len(t.all)
	}
}

// lookNext makes the next Look check a slot.
func (t *Table) lookNext(i int) {
	if t.slotStates != nil && t.slotStates[i].hot == 0 {
		t.slotStates[i].hot = staysHot
		t.hot = append(t.hot, i)
	}
}

// look checks one slot, and reports whether it is hot.
func (t *Table) look(i int, changed func(*Connection), ended func(Ended)) (hot bool) {
	s, w := &t.all[i], &t.slotStates[i]
	id := collective.ID(atomic.LoadUint64(&s.Cookie))
	if begun := atomic.LoadUint64(&s.BegunNs); id != w.id || begun != w.begun {
		if w.notified {
			t.readLives(ended)
		}
		if w.notified { // its end was lost
			ended(Ended{Set: w.set, ID: w.id})
		}
		*w = slotState{id: id, begun: begun}
	}
	if id == 0 {
		return false
	}
	if w.notified && w.count == atomic.LoadUint64(&s.Count) {
		w.hot = max(w.hot-1, 0)
		return w.hot > 0
	}
	c, ok := s.snapshot()
	if !ok || collective.ID(c.Cookie) != id {
		return w.hot > 0 // the kernel is writing it, or it just ended
	}
	if w.notified && c.Set != w.set {
		ended(Ended{Set: w.set, ID: id})
	}
	w.notified, w.count, w.set, w.hot = true, c.Count, c.Set, staysHot
	changed(c.connection(i))
	return true
}

// Connections returns a consistent snapshot of each current connection.
func (t *Table) Connections() iter.Seq[*Connection] {
	return func(yield func(*Connection) bool) {
		for i := range t.all {
			if t.all[i].Cookie == 0 {
				continue
			}
			s, ok := t.all[i].snapshot()
			if ok && !yield(s.connection(i)) {
				return
			}
		}
	}
}

func (s *slot) connection(i int) *Connection {
	us := func(v uint64) time.Duration { return time.Duration(v) * time.Microsecond }
	return &Connection{
		ID: collective.ID(s.Cookie), Set: s.Set, Passive: s.Passive != 0,
		Local: s.local(), Remote: s.remote(), Seen: time.Duration(s.SeenNs),
		Rounds: s.Rtts, RTT: us(uint64(s.RttUs)), RTTSum: us(s.RttSumUs), Newest: us(uint64(s.NewestUs)),
		Acked: s.Acked, Backlog: s.Backlog,
		Window: s.Cwnd, Threshold: s.Ssthresh, Segment: s.Mss,
		Retransmits: s.Retransmits, Segments: s.Segments,
		Timeouts: s.Timeouts, Resent: s.Resent, Marked: s.Marked, Paced: s.Paced, Clamped: s.Clamped,
		Reno: s.Reno != 0, Lost: s.Lost, LossAt: time.Duration(s.LossNs),
		ReceiverFull: s.ReceiverFull != 0,
		Joined:       s.Asked != 0, Weight: s.Weight,
		slot: i,
	}
}
