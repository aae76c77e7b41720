package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Constants of queue, chosen for Headgate.
const (
	// queueInterval is how often the round-trip times are looked at.
	queueInterval = 200 * time.Millisecond
	// fullRTT is by how much the round-trip time must exceed its least, always, for a queue that is never empty: CUBIC in a
	// queue of one bandwidth-delay product has 1.4 after a loss. minFullRTT is the least excess that is no measuring error.
	fullRTT, minFullRTT = 1.15, 2 * time.Millisecond
	// jitters is how many times the variation of the round-trip time the excess must have: on a path with jitter and
	// without a queue it has about two.
	jitters = 3
	// fullLost is the part of the bytes that may be lost: what fills the queue overflows it at times.
	fullLost = 0.02
)

// queue tells whether the queue of a path was never empty in an epoch, from what the kernel knows of its streams.
type queue struct {
	before []*unix.TCPInfo
	looks  int
	empty  bool // at one look
}

func (q *queue) look(streams []*unix.TCPInfo) {
	q.looks++
	var sum, variation, least time.Duration
	for _, i := range streams {
		if m := minRTT(i); m > 0 && (least == 0 || m < least) {
			least = m
		}
		sum += time.Duration(i.Rtt) * time.Microsecond
		variation += time.Duration(i.Rttvar) * time.Microsecond
	}
	if len(streams) == 0 || least == 0 {
		q.empty = true
		return
	}
	n := time.Duration(len(streams))
	excess := sum/n - least
	q.empty = q.empty || float64(excess) < (fullRTT-1)*float64(least) || excess < max(minFullRTT, jitters*variation/n)
}

// full takes the streams at the end of the epoch.
func (q *queue) full(after []*unix.TCPInfo) bool {
	sent, lost := uint64(0), uint64(0)
	for _, i := range after {
		sent, lost = sent+i.Bytes_sent, lost+i.Bytes_retrans
	}
	for _, i := range q.before {
		sent, lost = sent-i.Bytes_sent, lost-i.Bytes_retrans
	}
	// Differences below 0, of streams that have ended, are large numbers.
	return q.looks > 0 && !q.empty && sent < 1<<60 && float64(lost) <= fullLost*float64(sent)
}
