package traffic

import (
	"math"

	"headgate.dev/headgate/unit"
)

// source is the load that a flow offers over time. It only moves forward and stores no history, so
// that its cost does not grow with the duration.
type source interface {
	// advance moves to now, in ns since the run's start, and returns the layer-2 bits that were
	// offered since the last call. Parts at Unlimited count as 0, because their amount is unknown.
	advance(now int64, frameBits float64) (bits float64)
	// rate returns the rate that is offered now.
	rate() unit.Rate
	// due returns when so many more bits will have been offered, if the rate stays until then; never,
	// if the source ends before.
	due(bits, frameBits float64) int64
}

// never is later than the end of any run.
const never = math.MaxInt64

// course is a source of steps: the rate at any time is that of the last step.
type course struct {
	at   int64
	now  unit.Rate
	next func() (Step, bool) // the steps in order of At
	step Step                // the next step, if there is one
	more bool
}

func newCourse(next func() (Step, bool)) *course {
	c := &course{next: next}
	c.step, c.more = next()
	return c
}

// stepsOf returns the steps of a schedule one by one.
func stepsOf(s []Step) func() (Step, bool) {
	return func() (st Step, ok bool) {
		if len(s) == 0 {
			return st, false
		}
		st, s = s[0], s[1:]
		return st, true
	}
}

func (c *course) advance(now int64, _ float64) (bits float64) {
	for c.at < now {
		to := now
		if c.more {
			to = max(min(now, int64(c.step.At)), c.at)
		}
		if c.now != Unlimited {
			bits += float64(c.now) * float64(to-c.at) / 1e9
		}
		c.at = to
		c.take()
	}
	c.take() // a step at this time
	return bits
}

// take sets the rate from the steps until now.
func (c *course) take() {
	for c.more && int64(c.step.At) <= c.at {
		c.now = c.step.Rate
		c.step, c.more = c.next()
	}
}

func (c *course) rate() unit.Rate { return c.now }

func (c *course) due(bits, _ float64) int64 {
	at := int64(never)
	if c.now == Unlimited {
		return c.at
	}
	if ns := bits / float64(c.now) * 1e9; c.now > 0 && ns < never/4 {
		at = c.at + int64(math.Ceil(max(ns, 0)))
	}
	if c.more {
		at = min(at, int64(c.step.At))
	}
	return at
}
