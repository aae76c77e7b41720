package stripe

import (
	"math"
	"time"
)

// DirectPath is what is known of a path on which a direct TCP connection could be. Zero values are unknown.
type DirectPath struct {
	// Carried is the highest rate of bytes that the path is known to have carried, per second.
	Carried float64
	// Loss is the part of segments that the path loses.
	Loss float64
	RTT  time.Duration
	// Segment is the size of a segment, and Window the largest receive window of the connection, in bytes.
	Segment, Window int
}

// Rate returns the estimated rate of one TCP connection on the path in bytes per second, 0 if nothing is known:
// the least of what the path can carry, what CUBIC sends at its loss, and one receive window in each round-trip time.
// Slow start, timeouts, competing traffic and queues that lengthen the round-trip time are left out.
func (p DirectPath) Rate() float64 {
	limit := p.Carried
	least := func(rate float64) {
		if limit == 0 || rate < limit {
			limit = rate
		}
	}
	if p.RTT > 0 && p.Window > 0 {
		least(float64(p.Window) / p.RTT.Seconds())
	}
	if p.RTT > 0 && p.Segment > 0 && p.Loss > 0 {
		least(cubicWindow(p.Loss, p.RTT) * float64(p.Segment) / p.RTT.Seconds())
	}
	return limit
}

// cubicWindow returns the average congestion window of CUBIC in segments: RFC 9438, section 5.1, with C = 0.4 and
// beta = 0.7. Where Reno has a larger window, CUBIC follows it (section 4.3): the average of additive increase and
// multiplicative decrease at the loss p is sqrt(3 / (2 p)) for both.
func cubicWindow(loss float64, rtt time.Duration) float64 {
	const c, beta = 0.4, 0.7
	cubic := math.Pow(c*(3+beta)/(4*(1-beta)), 0.25) * math.Pow(rtt.Seconds()/loss, 0.75)
	reno := math.Sqrt(1.5 / loss)
	return max(cubic, reno, 1)
}

// Constants of LossMeter, chosen for Headgate.
const (
	// minLossTime and minLossBytes are the shortest time and the fewest bytes of an interval. It has two round-trip times
	// at least, in which what was lost is sent again.
	minLossTime, minLossBytes = 100 * time.Millisecond, 64 << 10
	// maxIntervals is how many intervals count: then each counts half.
	maxIntervals = 600
	// minKnownBytes are necessary for a loss rate.
	minKnownBytes = 1_000_000
	// minWithoutLoss is the part of intervals without loss from which the number of losses can be told.
	minWithoutLoss = 0.05
)

// LossMeter measures the loss rate of a path by what its streams lose while CUBIC controls them: BBR keeps a short queue
// full and loses much more there than a direct connection with CUBIC.
//
// A full queue loses many segments at once, which slow a connection down once. So it counts how many of its intervals
// are without loss: if a path loses segments independently, with the mean m in an interval, this part is exp(-m).
type LossMeter struct {
	intervals, without float64 // all, and those without loss
	sent, lost         float64

	// The present interval has begun at a time, with so many bytes sent and lost; other is true if CUBIC did not
	// control all streams.
	began                  time.Duration
	sentBefore, lostBefore uint64
	other                  bool
}

// Add adds how many bytes the path's streams had sent and lost at a time since the first one was opened, their
// round-trip time, and whether CUBIC controls all of them.
func (m *LossMeter) Add(now time.Duration, sent, lost uint64, rtt time.Duration, cubic bool) {
	m.other = m.other || !cubic
	if now-m.began < max(minLossTime, 2*rtt) || sent-m.sentBefore < minLossBytes {
		return
	}
	if !m.other {
		m.intervals++
		if lost == m.lostBefore {
			m.without++
		}
		m.sent += float64(sent - m.sentBefore)
		m.lost += float64(lost - m.lostBefore)
	}
	if m.intervals >= maxIntervals {
		m.intervals, m.without, m.sent, m.lost = m.intervals/2, m.without/2, m.sent/2, m.lost/2
	}
	m.began, m.sentBefore, m.lostBefore, m.other = now, sent, lost, !cubic
}

// Rate returns the loss rate of segments of a size; ok is false if CUBIC has not sent enough.
func (m *LossMeter) Rate(segment int) (rate float64, ok bool) {
	if m.sent < minKnownBytes {
		return 0, false
	}
	rate = min(m.lost/m.sent, 1)
	if part := m.without / m.intervals; part >= minWithoutLoss {
		rate = min(rate, -math.Log(part)*m.intervals*float64(segment)/m.sent)
	}
	return rate, true
}
