package sockops

import (
	"iter"
	"net/netip"
	"sync/atomic"
	"time"

	"headgate/collective"
)

// Connection is what one shows.
type Connection struct {
	collective.ID
	Set           uint32
	Passive       bool // it was accepted, not opened
	Local, Remote netip.AddrPort
	// Seen is its last callback, on the clock of Now.
	Seen time.Duration
	// Rounds is how many round trips were measured, RTTSum their sum, RTT the newest.
	Rounds      uint32
	RTT, RTTSum time.Duration
	// Newest is the round trip of the packet that was sent last of those acknowledged.
	Newest  time.Duration
	Acked   uint64 // bytes
	Backlog uint32 // bytes written and not sent
	// Window and Threshold (ssthresh) are in packets of at most Segment bytes.
	Window, Threshold, Segment uint32
	// Retransmits and Segments count packets.
	Retransmits, Segments uint32
	// Timeouts, Resent and Marked count events: of the timer, of other retransmissions, and of
	// marks with CE, of a recovery that takes long the first round trip only.
	Timeouts, Resent, Marked uint32
	// Paced (bytes a second) and Clamped (packets) are the caps in force; 0 is none.
	Paced, Clamped uint32
	// ReceiverFull: its window has no room for another packet.
	ReceiverFull bool
	// Asked: its application asked for it to be in the set, with a Weight by hand or 0.
	Asked  bool
	Weight float64

	slot int
}

// seen is what the last look found in a slot.
type seen struct {
	id    collective.ID // 0 is nobody
	begun uint64        // a socket may connect again
	set   uint32
	told  bool // of the connection, with this count
	count uint64
	hot   int // looks for which it stays so without a change
}

// Ours: a slot that has shown something in the last staysHot looks is looked at every time;
// of the others so many each time, in turns, or a 64th.
const staysHot, others = 100, 256

// Look tells of every connection that has shown something since the last look, and of every
// one that ended. Of one that was silent it tells when its turn comes.
func (t *Table) Look(changed func(*Connection), ended func(set uint32, id collective.ID)) {
	if t.seen == nil {
		t.seen = make([]seen, len(t.all))
	}
	still := t.hot[:0]
	for _, i := range t.hot {
		if t.look(i, changed, ended) {
			still = append(still, i)
		}
	}
	t.hot = still
	for range min(max(others, len(t.all)/64), len(t.all)) {
		if t.seen[t.turn].hot == 0 && t.look(t.turn, changed, ended) {
			t.hot = append(t.hot, t.turn)
		}
		t.turn = (t.turn + 1) % len(t.all)
	}
}

// lookNext has the next Look look at a slot, whoever's turn it is.
func (t *Table) lookNext(i int) {
	if t.seen != nil && t.seen[i].hot == 0 {
		t.seen[i].hot = staysHot
		t.hot = append(t.hot, i)
	}
}

// look looks at one slot, and says whether it is hot.
func (t *Table) look(i int, changed func(*Connection), ended func(set uint32, id collective.ID)) (hot bool) {
	s, w := &t.all[i], &t.seen[i]
	id := collective.ID(atomic.LoadUint64(&s.Cookie))
	if begun := atomic.LoadUint64(&s.BegunNs); id != w.id || begun != w.begun {
		if w.told {
			ended(w.set, w.id)
		}
		*w = seen{id: id, begun: begun}
	}
	if id == 0 {
		return false
	}
	if w.told && w.count == atomic.LoadUint64(&s.Count) {
		w.hot = max(w.hot-1, 0)
		return w.hot > 0
	}
	c, ok := s.snapshot()
	if !ok || collective.ID(c.Cookie) != id {
		return w.hot > 0 // it is being written, or ended just now
	}
	if w.told && c.Set != w.set {
		ended(w.set, id)
	}
	w.told, w.count, w.set, w.hot = true, c.Count, c.Set, staysHot
	changed(c.connection(i))
	return true
}

// Connections are all that are there now, each as it stood at one time.
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
		ReceiverFull: s.ReceiverFull != 0,
		Asked:        s.Asked != 0, Weight: s.Weight,
		slot: i,
	}
}
