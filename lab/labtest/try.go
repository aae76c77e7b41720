package labtest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/internal/awake"
)

// Attempts is the maximum number of attempts of Try.
const Attempts = 5

// Limits of attempts that do not count, chosen by this project: an emulated link at 1 Gbit/s was late
// by milliseconds once a hypervisor took a tenth of a processor (steal time). patience is for a whole
// test program, so that CI ends.
const (
	stolenBound = 0.1
	maxPatience = 3 * time.Minute
)

var patience atomic.Int64 // used so far, ns

// Try repeats a measurement until it succeeds, five times at most; the errors of the last attempt fail
// the test. It is for timing tests on machines that may stall: on a virtual machine, a real-time
// thread that only sleeps was late by 10 ms in most minutes, and by 995 ms once an hour. A wrong
// result, as opposed to a late one, fails all five times. An attempt with steal time does not count,
// until patience is used up.
func Try(t *testing.T, measure func(c *Check)) {
	t.Helper()
	for n := 1; ; n++ {
		c := &Check{TB: t}
		began, before := time.Now(), awake.Stolen()
		func() {
			defer c.end()
			measure(c)
		}()
		if len(c.complaints) == 0 {
			return
		}
		took := time.Since(began)
		if part := (awake.Stolen() - before) / took.Seconds(); part > stolenBound && patience.Load() < int64(maxPatience) {
			patience.Add(int64(took))
			t.Logf("an attempt that does not count, because of %.0f %% steal time of a processor: %s", 100*part, c.complaints[0])
			n--
			continue
		}
		for _, s := range c.complaints {
			if n == Attempts {
				t.Error(s)
			} else {
				t.Logf("attempt %d: %s", n, s)
			}
		}
		if n == Attempts {
			return
		}
		time.Sleep(time.Second)
	}
}

// Check is the testing.TB of one attempt. Error and Errorf fail the attempt, Fatal fails the test;
// Cleanup runs at the end of the attempt.
type Check struct {
	testing.TB
	complaints []string
	cleanups   []func()
}

// Error records an error.
func (c *Check) Error(a ...any) { c.complaints = append(c.complaints, fmt.Sprint(a...)) }

// Errorf records an error.
func (c *Check) Errorf(format string, a ...any) { c.Error(fmt.Sprintf(format, a...)) }

// Cleanup registers a function for the end of the attempt; the last registered runs first.
func (c *Check) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

func (c *Check) end() {
	for len(c.cleanups) > 0 {
		last := len(c.cleanups) - 1
		f := c.cleanups[last]
		c.cleanups = c.cleanups[:last]
		f()
	}
}
