package collective

import (
	"time"

	"headgate/unit"
)

// ID names a connection: its socket's cookie (SO_COOKIE), which the kernel gives to no
// other socket while the machine runs.
type ID uint64

// Event is signs of congestion that a connection had.
type Event uint8

// The events of the seed's III-B-1.
const (
	// ECN: its packets were marked, as the receiver said.
	ECN Event = 1 << iota
	// Timeout: its retransmission timer ran out.
	Timeout
	// FastRetransmit: it sent something again, before the timer did.
	FastRetransmit
)

// Reading is what a connection shows once a round trip, or later if it was silent.
type Reading struct {
	At time.Duration
	// RTT is the newest sample, not smoothed.
	RTT time.Duration
	// Newest is the round trip of the packet that was sent last of those acknowledged: not
	// in it is what the receiver waits for the next one before it acknowledges both.
	Newest time.Duration
	// Acked is how many bytes were acknowledged since the connection began.
	Acked uint64
	// Backlog is what the application has written and TCP has not sent yet.
	Backlog unit.Bytes
	// ReceiverFull: it is the receiver that takes no more.
	ReceiverFull bool
	// Events are since the reading before.
	Events Event
}

// Waits tells whether the connection has work that the path, or a cap, keeps waiting. Less
// than a segment may wait for more of it (Nagle).
func (r Reading) Waits() bool { return r.Backlog >= segment && !r.ReceiverFull }

// segment is what a packet usually carries, in bytes: 1500 less the headers of IPv4, and of
// TCP with timestamps.
const segment = 1448

// Cap is what a connection may send at most; zeros are no bounds.
type Cap struct {
	// Window is in flight, in bytes.
	Window unit.Bytes
	// Rate is the pace.
	Rate unit.Rate
}
