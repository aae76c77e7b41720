package link

import (
	"cmp"
	"math"
	"time"
)

// CoDel drops or marks at the head of the queue while segments wait longer than Target for longer than Interval (RFC 8289).
type CoDel struct {
	// Target and Interval; 0 is DefaultTarget and DefaultInterval.
	Target   time.Duration `json:",omitempty"`
	Interval time.Duration `json:",omitempty"`
	// ECN marks segments of ECN-capable senders instead of dropping them.
	ECN bool `json:",omitempty"`
}

// Defaults of RFC 8289, section 4.2 and 4.3, and of sch_codel.
const DefaultTarget, DefaultInterval = 5 * time.Millisecond, 100 * time.Millisecond

// codel is a CoDel with its state. Names are those of RFC 8289, section 5.
type codel struct {
	target, interval int64
	firstAboveTime   int64 // 0: the wait was below the target
	dropNext         int64
	count, lastCount int
	dropping         bool
	ecn              bool
}

func newCoDel(s CoDel, old *codel) *codel {
	c := &codel{}
	if old != nil {
		*c = *old
	}
	c.target, c.interval, c.ecn = int64(s.target()), int64(s.interval()), s.ECN
	return c
}

func (c CoDel) target() time.Duration   { return cmp.Or(c.Target, DefaultTarget) }
func (c CoDel) interval() time.Duration { return cmp.Or(c.Interval, DefaultInterval) }

// verdict reports whether the segment that leaves the queue at a time, after it has waited, is dropped or marked. left is the bytes behind it.
func (c *codel) verdict(at, waited int64, left int) bool {
	above := false
	switch {
	case waited < c.target || left <= FullFrame:
		c.firstAboveTime = 0
	case c.firstAboveTime == 0:
		c.firstAboveTime = at + c.interval
	default:
		above = at >= c.firstAboveTime
	}
	switch {
	case c.dropping && !above:
		c.dropping = false
	case c.dropping && at >= c.dropNext:
		c.count++
		c.dropNext = c.after(c.dropNext)
		return true
	case !c.dropping && above:
		c.dropping = true
		// Soon after the last time the rate of drops goes on where it was.
		delta := c.count - c.lastCount
		c.count = 1
		if delta > 1 && at-c.dropNext < 16*c.interval {
			c.count = delta
		}
		c.dropNext, c.lastCount = c.after(at), c.count
		return true
	}
	return false
}

// after is the control law: the time of the next drop.
func (c *codel) after(t int64) int64 {
	return t + int64(float64(c.interval)/math.Sqrt(float64(c.count)))
}
