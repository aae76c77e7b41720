package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// pacer says how many frames a flow may send now. Everything is in layer-2 bits,
// which is what a source is in.
type pacer struct {
	source    source
	frameBits float64       // of a full frame
	backlog   time.Duration // how much of the rate is kept for later
	owed      float64       // offered and not yet taken by the socket
	offered   float64       // by the source since the start
	dropped   float64       // given up, because the backlog was full
}

// update adds what the source offered until now, and gives up what is beyond the
// backlog. It returns the rate that is offered at this moment.
func (p *pacer) update(now int64) unit.Rate {
	bits, before := p.source.advance(now, p.frameBits), p.owed
	p.owed += bits
	p.offered += bits
	rate := p.source.rate()
	// At least two frames: a slow flow must be able to save up for one.
	bound := max(float64(rate)*p.backlog.Seconds(), 2*p.frameBits)
	switch {
	case rate == Unlimited:
		p.drop(p.owed)
	case rate == 0:
		// An application that stops has nothing to catch up with. What it offered
		// since the last time, right before, still goes out: many short turns would
		// otherwise lose a tick each.
		if before >= 2*p.frameBits {
			p.drop(before)
		}
	case p.owed > bound:
		p.drop(p.owed - bound)
	}
	return rate
}

func (p *pacer) drop(bits float64) {
	p.owed -= bits
	p.dropped += bits
}

// due is when a flow must be looked at again that waits until so many bits are
// owed: never sooner than a tick for steps, whose pieces may be as small as one
// likes, but at once for a datagram that has its own moment.
func (p *pacer) due(now int64, bits float64) int64 {
	if bits <= p.owed {
		return now + int64(tick) // the socket is full
	}
	at := p.source.due(bits-p.owed, p.frameBits)
	if _, exact := p.source.(*arrivals); exact || at == never {
		return max(at, now)
	}
	// On the grid of ticks, so that flows share the wake-up.
	at = max(at, now+int64(tick)/2)
	return at + int64(tick) - 1 - (at-1)%int64(tick)
}

// bytesIn is the bytes that a rate carries in d.
func bytesIn(r unit.Rate, d time.Duration) int { return int(float64(r) / 8 * d.Seconds()) }
