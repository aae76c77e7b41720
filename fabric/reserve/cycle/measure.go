package cycle

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Reading is what has been counted of a flow until one moment.
type Reading struct {
	Flow FlowID
	// Index is that of the flow in Flows if the caller knows it: then the flow is found in 5 ns instead of 150.
	Index int
	// At is the moment of counting, by a monotonic clock of the counter or of the reader. All readings of a flow are of one
	// clock.
	At time.Duration
	// Offered has the bytes of layer 2 that arrived at the point, before its limit, and Delivered those that it passed.
	// Delivered is fabric.Uncounted where the point does not count them. Both only grow. They may begin again: then the
	// rate of that cycle is not known.
	Offered, Delivered uint64
	// Wants is the least that the senders are known to want, 0 if that is what they offer. It counts for limits, and in no account.
	Wants unit.Rate
}

// measured is what a flow did between two readings.
type measured struct {
	took               time.Duration
	offered, delivered uint64 // bytes
}

// rate and deliveredRate return the offered and the delivered rate, to the nearest bit/s.
func (m measured) rate() unit.Rate          { return m.rateOf(m.offered) }
func (m measured) deliveredRate() unit.Rate { return m.rateOf(m.delivered) }

func (m *measured) add(more measured) {
	m.took, m.offered, m.delivered = m.took+more.took, m.offered+more.offered, m.delivered+more.delivered
}

func (m measured) rateOf(bytes uint64) unit.Rate {
	return unit.Rate(min(float64(bytes)*8/m.took.Seconds()+0.5, float64(unit.MaxRate)))
}

// counted is a Reading without its flow.
type counted struct {
	at                 time.Duration
	offered, delivered uint64
}

// meter makes amounts of the readings of a flow.
type meter struct {
	last  counted
	known bool
}

// take takes a reading. It reports false without an earlier one, if no time has passed since, and if a counter began again.
// limit, in force since the earlier reading, stands for a counter of what passed.
func (m *meter) take(now counted, limit unit.Rate) (measured, bool) {
	was, known := m.last, m.known
	if known && now.at <= was.at {
		return measured{}, false
	}
	m.last, m.known = now, true
	uncounted := now.delivered == fabric.Uncounted || was.delivered == fabric.Uncounted
	if !known || now.offered < was.offered || !uncounted && now.delivered < was.delivered {
		return measured{}, false
	}
	d := measured{took: now.at - was.at, offered: now.offered - was.offered}
	if uncounted {
		d.delivered = min(d.offered, uint64(min(float64(limit)/8*d.took.Seconds(), float64(d.offered))))
	} else {
		d.delivered = now.delivered - was.delivered
	}
	return d, true
}
