package collective

import (
	"math"
	"math/rand/v2"
	"time"
)

// Constants of TCP.
const (
	// renoBackoff is the part of its window that a connection keeps after a loss (RFC 5681, equation 4), cubicBackoff that of CUBIC (RFC 9438, section 4.6).
	renoBackoff, cubicBackoff = 0.5, 0.7
	// Windows beyond maxUnused times what is in flight do not grow (RFC 7661, section 4.3; Linux, tcp_is_cwnd_limited), but for initialWindow segments of each
	// connection (RFC 6928).
	maxUnused, initialWindow = 2, 10
	// minTimer is the shortest retransmission timer of Linux (TCP_RTO_MIN).
	minTimer = 200 * time.Millisecond
	// minRTT is the shortest round trip that is reckoned with.
	minRTT = 100 * time.Microsecond
	// cubicGrowth is C of CUBIC, in segments per second cubed (RFC 9438, section 5).
	cubicGrowth = 0.4
	// CUBIC leaves slow start, from a window of minHystart segments on, with a delay of an eighth of the round trip between these bounds (RFC 9406 and Linux, net/ipv4/tcp_cubic.c).
	minHystart                       = 16
	minHystartDelay, maxHystartDelay = 4 * time.Millisecond, 16 * time.Millisecond
)

// ordinary is the window that a connection would have without control: it grows as that of Reno or CUBIC, and shrinks by the losses that the set sees.
type ordinary struct {
	in, reno          bool    // in: it is in the share of the set
	window, threshold float64 // in segments
	// cut is the time of the last cut, recovered the end of the recovery after it. most is the window before it, epoch when CUBIC's growth began.
	cut, recovered time.Duration
	most           float64
	short          float64 // of most, at the epoch
	epoch          time.Duration
}

// fairShare is what as many ordinary connections as a set has with backlog would have in flight in its place. A lost segment is that of a connection by chance, in
// proportion to the windows.
type fairShare struct {
	window float64 // of all, in segments
	// mean is the mean need of the connections whose own is known, 0 without one.
	mean   float64
	now    time.Duration
	chance *rand.Rand
}

func newFairShare(now time.Duration) fairShare {
	return fairShare{now: now, chance: rand.New(rand.NewPCG(1, 1))}
}

// grow moves a window on over a time. delayed is a queue for which CUBIC leaves slow start.
func (o *ordinary) grow(now, took, rtt time.Duration, delayed bool) {
	rounds := took.Seconds() / rtt.Seconds()
	switch {
	case now < o.recovered: // a recovery takes a round trip
	case o.window < o.threshold && !o.reno && delayed && o.window >= minHystart:
		o.threshold = o.window
	case o.window < o.threshold:
		o.window = min(o.window*math.Exp2(min(rounds, 1)), o.threshold)
	case !o.reno:
		if o.epoch == 0 {
			o.epoch, o.most = now, o.window
		}
		o.window = max(o.window+rounds*3*(1-cubicBackoff)/(1+cubicBackoff), o.cubicWindow(now, rtt))
	default:
		o.window += rounds
	}
}

// cubicWindow is the window of CUBIC a round trip later (RFC 9438, equation 1).
func (o *ordinary) cubicWindow(now, rtt time.Duration) float64 {
	t := (now - o.epoch + rtt).Seconds() - math.Cbrt(o.short/cubicGrowth)
	return cubicGrowth*t*t*t + o.most
}

// lose is a loss, found in a recovery that began at since.
func (o *ordinary) lose(now, since, rtt time.Duration, timeout bool) {
	if o.cut > 0 && (o.cut >= since || now < o.recovered) {
		return // it was sent before the cut
	}
	keep := renoBackoff
	before := o.most
	o.most, o.cut, o.recovered, o.epoch = o.window, now, now+rtt, now+rtt
	if !o.reno {
		keep = cubicBackoff
		if o.window < before { // fast convergence (RFC 9438, section 4.7)
			o.most = o.window * (1 + cubicBackoff) / 2
		}
	}
	o.threshold = max(o.window*keep, 2)
	o.window = o.threshold
	o.short = max(o.most-o.window, 0)
	if timeout {
		o.window, o.recovered = 1, now+minTimer
	}
}

// startFair makes the ordinary windows what the connections have as control begins.
func (c *Control) startFair(now time.Duration) {
	c.scaleControl.fair = newFairShare(now)
	c.meanNeed(now)
	for _, m := range c.members {
		m.ordinary = ordinary{}
		if !m.counts(now) {
			continue
		}
		flight := inFlight(max(m.rate, m.need()), m.rtt)
		m.ordinary = ordinary{in: true, reno: m.newest.Reno, window: max(flight, 2, float64(m.newest.Window)), threshold: float64(m.newest.Threshold)}
		if m.newest.Threshold == 0 {
			m.ordinary.threshold = math.Inf(1)
		}
		c.scaleControl.fair.window += m.ordinary.window * c.scaleControl.fair.part(m)
	}
}

// growFair moves the ordinary windows on to a time. Alone, a set does not fill the queue as they would: they stop, and have at least what the set has in flight when others
// come.
func (c *Control) growFair(now time.Duration) {
	s, l := c.summary, &c.scaleControl
	f := &l.fair
	took := min(now-f.now, stallTime)
	f.now = now
	c.meanNeed(now)
	flight := inFlight(s.attained, s.rtt)
	grows := l.rivals && f.window <= maxUnused*flight+initialWindow*float64(s.waiting)
	delayed := s.queue > min(max((s.rtt-s.queue)/8, minHystartDelay), maxHystartDelay)
	sum, n := 0.0, 0.0
	for _, m := range c.members {
		if o := &m.ordinary; !c.contributes(m, now) {
			o.in = false
		} else if o.in {
			if grows {
				o.grow(now, took, max(s.rtt, minRTT), delayed)
			} else if o.epoch > 0 {
				o.epoch += took
			}
			sum, n = sum+o.window*f.part(m), n+f.part(m)
		}
	}
	mean := 2.0
	if n > 0 {
		mean = sum / n
	}
	for _, m := range c.members { // that have backlog again
		if !m.ordinary.in && c.contributes(m, now) {
			m.ordinary = ordinary{in: true, reno: m.newest.Reno, window: mean, threshold: mean}
			sum += mean * f.part(m)
		}
	}
	if !l.rivals && sum > 0 && sum < flight {
		for _, m := range c.members {
			m.ordinary.window *= flight / sum
			m.ordinary.threshold = min(m.ordinary.threshold, m.ordinary.window)
		}
		sum = flight
	}
	f.window = sum
}

// meanNeed updates the mean need of the connections whose own is known.
func (c *Control) meanNeed(now time.Duration) {
	sum, n := 0.0, 0.0
	for _, m := range c.members {
		if m.counts(now) && !m.isAssumed() {
			sum, n = sum+m.need(), n+1
		}
	}
	if c.scaleControl.fair.mean = 0; n > 0 {
		c.scaleControl.fair.mean = sum / n
	}
}

// part is the part of an ordinary connection for which a connection counts. Those of a pool last longer the less they get: without congestion there are four at a time,
// with it 50, which are no more than the four.
func (f *fairShare) part(m *member) float64 {
	if !m.isAssumed() || f.mean == 0 {
		return 1
	}
	return min(m.need()/f.mean, 1)
}

// contributes reports whether the share of a set has the window of a connection: it has backlog, or none has any.
func (c *Control) contributes(m *member, now time.Duration) bool {
	return m.waiting(now) || c.summary.waiting == 0 && m.counts(now)
}

// loseFair is the loss of some segments.
func (c *Control) loseFair(r Reading, rtt time.Duration) {
	f := &c.scaleControl.fair
	for range r.lost() {
		at := f.chance.Float64() * f.window
		for _, m := range c.members {
			if !m.ordinary.in {
				continue
			}
			if at -= m.ordinary.window * f.part(m); at < 0 {
				before := m.ordinary.window
				m.ordinary.lose(r.At, r.Recovery, max(rtt, r.RTT), r.Events&Timeout != 0)
				f.window += (m.ordinary.window - before) * f.part(m)
				break
			}
		}
	}
}

// inFlight returns the segments of a rate in bit/s that are in flight.
func inFlight(rate float64, rtt time.Duration) float64 { return rate * rtt.Seconds() / 8 / segment }

// rate returns what all send, in bit/s.
func (f *fairShare) rate(rtt time.Duration) float64 {
	return f.window * segment * 8 / max(rtt, minRTT).Seconds()
}
