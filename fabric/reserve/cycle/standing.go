package cycle

import (
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate, in parts of what a link sends in a second.
const (
	// longestQueue is the longest queue that a link is taken to have, 50 ms: switches have from 1 to 100.
	longestQueue = 1. / 20
	// leastQueue is the least that is worth a change of limits, 5 ms: it is what the bucket of a meter holds after each change.
	leastQueue = 1. / 200
)

// standing is how many bits wait at each link, by the index of lines: what meters let pass is more than a link sends for a moment after each rise of a sender, and
// each change of a meter fills its bucket. If limits then total the capacity of the link, the queue stays for as long as they do. TCP loses packets
// there and sends less than it may, until its reservation is taken for unused (bench reservations, TCP at 100 Mbit/s: a reservation
// of 19 Mbit/s that wanted 22 had 11 for ten seconds, beside UDP). A link that has room for a moment is rid of it.
type standing []float64

// drain takes what the flows of a plan passed in a step, and returns what each link is to leave free in the next one for its queue to empty.
func (q *standing) drain(p plan, states []*state) (free []unit.Rate) {
	if len(*q) != len(p.capacities) {
		*q = make(standing, len(p.capacities))
	}
	passed, took := make([]unit.Rate, len(p.capacities)), make([]time.Duration, len(p.capacities))
	for _, s := range states {
		if s.point.Kind != Switch || len(s.spares) > 0 || !s.fresh {
			continue
		}
		for _, l := range s.links {
			passed[l] += s.delivered
			took[l] = max(took[l], s.step.took)
		}
	}
	free = make([]unit.Rate, len(p.capacities))
	for l, c := range p.capacities {
		seconds, capacity := took[l].Seconds(), float64(c)
		queue := &(*q)[l]
		*queue = min(max(*queue+(float64(passed[l])-capacity)*seconds, 0), longestQueue*capacity)
		if seconds == 0 {
			*queue = 0
		} else if *queue > leastQueue*capacity {
			free[l] = unit.Rate(*queue / seconds)
		}
	}
	return free
}

// drain tells the scheme, if it can use it, what links are to leave free.
func (c *Cycle) drain() {
	if d, ok := c.scheme.(share.Drainer); ok {
		d.Drain(c.standing.drain(c.plan, c.states))
	}
}
