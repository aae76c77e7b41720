package points

import (
	"sync"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/unit"
)

// Measured is what the packets of a direction did since the cycle before.
type Measured struct {
	// Offered is the rate at which they arrived at the queue, Delivered the rate at which they left it.
	Offered, Delivered unit.Rate
	// Queued is the part of the time, from 0 to 1, in which the queue was never empty. A TCP sender offers hardly more
	// than it may send; that it would send more is known by a Queued near 1.
	Queued float64
	// Drops are packets.
	Drops uint64
	// Limit is the limit in force at the end, as the agent has it.
	Limit unit.Rate
	// Period is the time that was measured.
	Period time.Duration
}

// Collector adds up the agents' reports between two cycles. Its methods may be called at the same time.
type Collector struct {
	mu  sync.Mutex
	sum map[string]sum
}

// sum is what the reports of a direction since the last Take have together.
type sum struct {
	offered, delivered, drops uint64
	period, queued            time.Duration
	limit                     uint64
}

// Add adds a report.
func (c *Collector) Add(r *agents.ReservationReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sum == nil {
		c.sum = map[string]sum{}
	}
	for _, one := range r.Reservations {
		if one.PeriodNs <= 0 {
			continue
		}
		s := c.sum[one.Key]
		s.offered, s.delivered, s.drops = s.offered+one.OfferedBytes, s.delivered+one.DeliveredBytes, s.drops+one.Drops
		s.period, s.queued, s.limit = s.period+time.Duration(one.PeriodNs), s.queued+time.Duration(one.QueuedNs), one.LimitBps
		c.sum[one.Key] = s
	}
}

// Take returns what was measured since the last call, by key. A direction of which no report came is missing.
func (c *Collector) Take() map[string]Measured {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]Measured, len(c.sum))
	for key, s := range c.sum {
		rate := func(bytes uint64) unit.Rate { return unit.Rate(float64(bytes) * 8 / s.period.Seconds()) }
		out[key] = Measured{
			Offered: rate(s.offered), Delivered: rate(s.delivered), Drops: s.drops, Period: s.period,
			Queued: min(max(s.queued.Seconds()/s.period.Seconds(), 0), 1), Limit: unit.Rate(s.limit),
		}
	}
	clear(c.sum)
	return out
}
