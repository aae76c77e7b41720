package cycle

import (
	"sync"
	"time"
)

// Time is one moment on two clocks.
type Time struct {
	// Elapsed is read from a monotonic clock, and counts from any fixed moment.
	Elapsed time.Duration
	// Wall is the time of day, which an administrator or NTP can step.
	Wall time.Time
}

const (
	// slew is the part of the elapsed time by which the calendar approaches a wall clock that was stepped. It is 200
	// times what adjtime corrects (500 ppm), so that an hour takes 10 hours, and small enough that no reservation of
	// minutes begins or ends by surprise.
	slew = 0.1
	// stepless is the difference that is taken at once: clocks that NTP holds differ by less.
	stepless = time.Second
)

// Calendar is the time by which reservations begin and end. It begins with the wall clock, advances with the monotonic
// clock, and never goes back. A wall clock that is stepped moves it gradually: by at most a tenth of the elapsed time.
// The zero Calendar is ready for use.
type Calendar struct {
	now  time.Time
	last time.Duration
	off  time.Duration
}

// Advance returns the time of the calendar at a moment. A monotonic clock that goes back counts as one without progress.
func (c *Calendar) Advance(t Time) time.Time {
	wall := t.Wall.Round(0)
	if c.now.IsZero() {
		c.now, c.last = wall, t.Elapsed
		return c.now
	}
	passed := max(0, t.Elapsed-c.last)
	c.last = t.Elapsed
	expected := c.now.Add(passed)
	c.off = wall.Sub(expected)
	step := c.off
	if c.off < -stepless || c.off > stepless {
		most := time.Duration(slew * float64(passed))
		step = min(max(c.off, -most), most)
	}
	// Below a second back, the calendar waits for the wall clock.
	if next := expected.Add(step); next.After(c.now) {
		c.now = next
	}
	c.off = wall.Sub(c.now)
	return c.now
}

// Off returns how far the wall clock is ahead of the calendar. It is above a second only after a step of the wall clock.
func (c *Calendar) Off() time.Duration { return c.off }

// Clock is a Calendar of a machine. Any number of goroutines may use it.
type Clock struct {
	wall  func() time.Time
	began time.Time

	mu       sync.Mutex
	calendar Calendar
}

// NewClock returns a clock that begins with the time of day, which wall returns: time.Now.
func NewClock(wall func() time.Time) *Clock { return &Clock{wall: wall, began: time.Now()} }

// Now returns the time of the calendar.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calendar.Advance(Time{Elapsed: time.Since(c.began), Wall: c.wall()})
}
