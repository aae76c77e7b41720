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
	// Acked is how many bytes were acknowledged since the connection began.
	Acked uint64
	// Backlog is what the application has written and TCP has not sent yet.
	Backlog unit.Bytes
	// Events are since the reading before.
	Events Event
}

// Cap is what a connection may send at most; zeros are no bounds.
type Cap struct {
	// Window is in flight, in bytes.
	Window unit.Bytes
	// Rate is the pace.
	Rate unit.Rate
}
