package collective

import (
	"time"

	"headgate.dev/headgate/unit"
)

// ID is the ID of a connection: the cookie of its socket (SO_COOKIE), which the kernel
// gives to no other socket until the machine restarts.
type ID uint64

// Event is a set of congestion events of a connection.
type Event uint8

// The events of the seed's III-B-1.
const (
	// ECN: the receiver reported marked packets.
	ECN Event = 1 << iota
	// Timeout: the retransmission timer expired.
	Timeout
	// FastRetransmit: a retransmission before the timer expired.
	FastRetransmit
)

// Reading is the state of a connection, once per round trip, or later if it was silent.
type Reading struct {
	At time.Duration
	// RTT is the newest sample, not smoothed.
	RTT time.Duration
	// Newest is the round trip of the acknowledged packet that was sent last. It excludes
	// the delay of the receiver's delayed acknowledgements.
	Newest time.Duration
	// Acked is the number of bytes acknowledged since the connection began.
	Acked uint64
	// Backlog is the bytes that the application has written and TCP has not sent yet.
	Backlog unit.Bytes
	// ReceiverFull is set if the receiver's window limits the connection.
	ReceiverFull bool
	// Events are those since the previous reading.
	Events Event
	// Lost is the number of segments that were found lost since the previous reading, and Recovery when the recovery began in which that was.
	Lost     int
	Recovery time.Duration
	// Reno is set if its congestion control is Reno; others are taken for CUBIC.
	Reno bool
	// Window and Threshold are the congestion window and the slow start threshold in segments; 0 is no threshold.
	Window, Threshold int
}

// lost returns the number of segments that were lost or marked.
func (r Reading) lost() int { return max(r.Lost, int(one(r.Events != 0))) }

// HasBacklog reports whether the connection has backlog because of the path or a cap. Less
// than a segment may wait for more data (Nagle).
func (r Reading) HasBacklog() bool { return r.Backlog >= segment && !r.ReceiverFull }

// segment is the usual payload of a packet in bytes: 1500 less the headers of IPv4, and
// of TCP with timestamps.
const segment = 1448

// Cap is a window cap and a pacing cap of a connection; zeros are no bounds.
type Cap struct {
	// Window is the maximum of bytes in flight.
	Window unit.Bytes
	// Rate is the pace.
	Rate unit.Rate
}
