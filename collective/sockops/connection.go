package sockops

import (
	"iter"
	"net/netip"
	"time"

	"headgate/collective"
)

// Connection is what one shows.
type Connection struct {
	collective.ID
	Set           uint32
	Passive       bool // it was accepted, not opened
	Local, Remote netip.AddrPort
	// Begun and Seen are on the clock of Now: when it was established, and its last callback.
	Begun, Seen time.Duration
	// Rounds is how many round trips were measured, RTTSum their sum, RTT the newest.
	Rounds      uint32
	RTT, RTTSum time.Duration
	Acked       uint64 // bytes
	Backlog     uint32 // bytes written and not sent
	// Window, Threshold (ssthresh), InFlight are in packets of at most Segment bytes.
	Window, Threshold, InFlight, Segment uint32
	// Delivered, Marked (with CE), Retransmits and Segments count packets.
	Delivered, Marked, Retransmits, Segments uint32
	// Timeouts and Resent count events: of the timer, and of other retransmissions.
	Timeouts, Resent uint32
	// Paced (bytes a second) and Clamped (packets) are the caps in force; 0 is none.
	Paced, Clamped uint32
	AppLimited     bool

	slot int
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
		Local: s.local(), Remote: s.remote(),
		Begun: time.Duration(s.BegunNs), Seen: time.Duration(s.SeenNs),
		Rounds: s.Rtts, RTT: us(uint64(s.RttUs)), RTTSum: us(s.RttSumUs),
		Acked: s.Acked, Backlog: s.Backlog,
		Window: s.Cwnd, Threshold: s.Ssthresh, InFlight: s.InFlight, Segment: s.Mss,
		Delivered: s.Delivered, Marked: s.Marked, Retransmits: s.Retransmits, Segments: s.Segments,
		Timeouts: s.Timeouts, Resent: s.Resent, Paced: s.Paced, Clamped: s.Clamped,
		AppLimited: s.AppLimited != 0,
		slot:       i,
	}
}
