package traffic

import (
	"time"

	"headgate/unit"
)

// pacer says how many frames a flow may offer now. Everything is in layer-2
// bits, which is what a schedule is in.
type pacer struct {
	owed    float64 // offered and not yet taken by the socket
	last    int64   // ns since the start, when owed was brought up to date
	dropped float64 // given up, because the backlog was full
}

// update adds what the schedule offered until now, and gives up what is beyond
// the backlog. It returns the rate that is offered at this moment.
func (p *pacer) update(f *Flow, now int64, frameBits float64) unit.Rate {
	p.owed += f.offered(p.last, now)
	p.last = now
	rate := f.rateAt(now)
	backlog := f.Backlog
	if backlog == 0 {
		backlog = DefaultBacklog
	}
	// At least two frames: a slow flow must be able to save up for one.
	bound := max(float64(rate)*backlog.Seconds(), 2*frameBits)
	switch {
	case rate == 0 || rate == Unlimited:
		// An application that stops has nothing to catch up with.
		p.drop(p.owed)
	case p.owed > bound:
		p.drop(p.owed - bound)
	}
	return rate
}

func (p *pacer) drop(bits float64) {
	p.owed -= bits
	p.dropped += bits
}

// maxRate is the highest finite rate of a schedule.
func maxRate(s []Step) (r unit.Rate) {
	for _, st := range s {
		if st.Rate != Unlimited {
			r = max(r, st.Rate)
		}
	}
	return r
}

// hasUnlimited tells whether a schedule has a part at Unlimited.
func hasUnlimited(s []Step) bool {
	for _, st := range s {
		if st.Rate == Unlimited {
			return true
		}
	}
	return false
}

// bytesIn is the bytes that a rate carries in d.
func bytesIn(r unit.Rate, d time.Duration) int { return int(float64(r) / 8 * d.Seconds()) }
