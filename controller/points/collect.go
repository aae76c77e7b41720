package points

import (
	"sync"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/unit"
)

// Measured is what the packets of a direction did since the cycle before.
type Measured struct {
	// Parts are the cycle without its last part, and the last part. There is one if no report begins there.
	Parts []Part
	// Queued is the part of the time, from 0 to 1, in which the queue was never empty. A TCP sender offers hardly more
	// than it may send; that it would send more is known by a Queued near 1.
	Queued float64
	// Drops are packets.
	Drops uint64
	// Limit is the limit in force at the end, as the agent has it.
	Limit unit.Rate
}

// Offered is the mean rate at which packets arrived.
func (m Measured) Offered() unit.Rate {
	var sum, period float64
	for _, p := range m.Parts {
		sum, period = sum+float64(p.Offered)*p.Period.Seconds(), period+p.Period.Seconds()
	}
	return unit.Rate(sum / max(period, 1e-9))
}

// Part is a part of a cycle.
type Part struct {
	// Offered is the rate at which packets arrived at the queue, Delivered the rate at which they left it.
	Offered, Delivered unit.Rate
	Period             time.Duration
}

// Collector keeps the agents' reports between two cycles. Its methods may be called at the same time.
type Collector struct {
	mu      sync.Mutex
	reports map[string][]*agents.ReservationCounters
}

// Add adds a report.
func (c *Collector) Add(r *agents.ReservationReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reports == nil {
		c.reports = map[string][]*agents.ReservationCounters{}
	}
	for _, one := range r.Reservations {
		if one.PeriodNs > 0 {
			c.reports[one.Key] = append(c.reports[one.Key], one)
		}
	}
}

// Take returns what was measured since the last call, by key. The last part is that of the latest reports, of at least a time together. A
// direction of which no report came is missing.
func (c *Collector) Take(last time.Duration) map[string]Measured {
	c.mu.Lock()
	all := c.reports
	c.reports = nil
	c.mu.Unlock()
	out := make(map[string]Measured, len(all))
	for key, reports := range all {
		n := len(reports) - 1
		for end := reports[n].PeriodNs; n > 0 && end < int64(last); end += reports[n].PeriodNs {
			n--
		}
		m := Measured{Parts: []Part{partOf(reports[n:])}, Limit: unit.Rate(reports[len(reports)-1].LimitBps)}
		if n > 0 {
			m.Parts = []Part{partOf(reports[:n]), m.Parts[0]}
		}
		var period, queued float64
		for _, one := range reports {
			m.Drops += one.Drops
			period, queued = period+float64(one.PeriodNs), queued+float64(one.QueuedNs)
		}
		m.Queued = min(max(queued/period, 0), 1)
		out[key] = m
	}
	return out
}

// partOf returns what reports have together.
func partOf(reports []*agents.ReservationCounters) (p Part) {
	var offered, delivered uint64
	for _, one := range reports {
		offered, delivered, p.Period = offered+one.OfferedBytes, delivered+one.DeliveredBytes, p.Period+time.Duration(one.PeriodNs)
	}
	p.Offered = unit.Rate(float64(offered) * 8 / p.Period.Seconds())
	p.Delivered = unit.Rate(float64(delivered) * 8 / p.Period.Seconds())
	return p
}
