package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// pacer determines how many frames a flow may send now. Amounts are in layer-2 bits, as those of a
// source.
type pacer struct {
	source    source
	frameBits float64       // of a full frame
	backlog   time.Duration // amount of the rate that is kept for later
	owed      float64       // offered and not yet accepted by the socket
	offered   float64       // by the source since the start
	dropped   float64       // discarded because the backlog was full
}

// update adds what the source has offered until now, and discards what exceeds the backlog. It returns
// the rate that is offered now.
func (p *pacer) update(now int64) unit.Rate {
	bits, before := p.source.advance(now, p.frameBits), p.owed
	p.owed += bits
	p.offered += bits
	rate := p.source.rate()
	// At least two frames: a slow flow must be able to accumulate one.
	bound := max(float64(rate)*p.backlog.Seconds(), 2*p.frameBits)
	switch {
	case rate == Unlimited:
		p.drop(p.owed)
	case rate == 0:
		// A flow that stops has nothing to catch up with. What it offered since the last update is
		// still sent: otherwise each of many short turns would lose a tick.
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

// due returns when a flow must be woken that waits until so many bits are owed. For steps, which may
// have any length, that is never earlier than a tick; for a datagram it is its own time.
func (p *pacer) due(now int64, bits float64) int64 {
	if bits <= p.owed {
		return now + int64(tick) // the socket is full
	}
	at := p.source.due(bits-p.owed, p.frameBits)
	if _, exact := p.source.(*arrivals); exact || at == never {
		return max(at, now)
	}
	// Aligned to ticks, so that flows share wake-ups.
	at = max(at, now+int64(tick)/2)
	return at + int64(tick) - 1 - (at-1)%int64(tick)
}

// bytesIn returns the bytes that a rate carries in d.
func bytesIn(r unit.Rate, d time.Duration) int { return int(float64(r) / 8 * d.Seconds()) }
