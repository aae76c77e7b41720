package cycle

import (
	"testing"
	"testing/synctest"
	"time"
)

// A time of day that is stepped by an hour, either way, moves the clock by a tenth of the time that passes, and it never goes back.
func TestClockStepped(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var off time.Duration
				c := NewClock(func() time.Time { return time.Now().Add(off) })
				began := c.Now()
				time.Sleep(time.Minute)
				off = step
				last := c.Now()
				for range 60 {
					time.Sleep(time.Second)
					now := c.Now()
					if now.Before(last) {
						t.Fatalf("the clock goes back from %v to %v", last, now)
					}
					last = now
				}
				if got, most := last.Sub(began), 12*time.Second; got < 2*time.Minute-most || got > 2*time.Minute+most {
					t.Errorf("%v passed in 2 minutes", got)
				}
				time.Sleep(11 * time.Hour)
				c.Now()
				time.Sleep(time.Second)
				if left := time.Now().Add(off).Sub(c.Now()); left.Abs() > time.Second {
					t.Errorf("the clock is %v behind the time of day after 11 hours", left)
				}
			})
		})
	}
}
