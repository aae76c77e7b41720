package traffic

import (
	"math"

	"headgate.dev/headgate/unit"
)

// source says what a flow offers as time goes on. It only moves forward, and
// remembers nothing: what a run of any length costs does not grow.
type source interface {
	// advance moves to now, in ns since the run's start, and returns the layer-2
	// bits that were offered since the last time; parts at Unlimited count as none,
	// because nobody knows.
	advance(now int64, frameBits float64) (bits float64)
	// rate is what is offered at the moment.
	rate() unit.Rate
	// due is when so many more bits will have been offered, if the rate stays until
	// then; never, if it is the end of the source that comes first.
	due(bits, frameBits float64) int64
}

// never is later than any run.
const never = math.MaxInt64

// course is the source of steps: the rate at all times is that of the last step.
type course struct {
	at   int64
	now  unit.Rate
	next func() (Step, bool) // the steps in order of At
	step Step                // the next one, if there is one
	more bool
}

func newCourse(next func() (Step, bool)) *course {
	c := &course{next: next}
	c.step, c.more = next()
	return c
}

// stepsOf gives the steps of a schedule one by one.
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
	c.take() // what begins at this very moment
	return bits
}

// take makes the steps that have come the rate.
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
