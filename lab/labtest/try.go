package labtest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/internal/awake"
)

// Attempts is how often Try tries.
const Attempts = 5

// Constants of attempts that do not count, ours: an emulated link at 1 Gbit/s was
// late by milliseconds from a tenth of a processor on that a hypervisor kept back.
// patience is for a whole test program, so that CI ends.
const (
	stolenBound = 0.1
	maxPatience = 3 * time.Minute
)

var patience atomic.Int64 // that was used, ns

// Try runs a measurement until it has nothing to complain about, five times at
// most; the last attempt's complaints fail the test. It is for timing on machines
// that may stand still: on a virtual one, a real-time thread that only sleeps was
// late by 10 ms most minutes and by 995 ms once in an hour. What is wrong, and
// not only late, fails five times as well. An attempt during which a hypervisor
// kept the processors back does not count, as long as there is patience.
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
			t.Logf("an attempt that does not count, because %.0f %% of a processor was kept back: %s", 100*part, c.complaints[0])
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

// Check is one attempt's testing.TB: Error and Errorf count against the attempt,
// Fatal against the test; Cleanup runs at the attempt's end.
type Check struct {
	testing.TB
	complaints []string
	cleanups   []func()
}

// Error notes a complaint.
func (c *Check) Error(a ...any) { c.complaints = append(c.complaints, fmt.Sprint(a...)) }

// Errorf notes a complaint.
func (c *Check) Errorf(format string, a ...any) { c.Error(fmt.Sprintf(format, a...)) }

// Cleanup is run at the attempt's end, last first.
func (c *Check) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

func (c *Check) end() {
	for len(c.cleanups) > 0 {
		last := len(c.cleanups) - 1
		f := c.cleanups[last]
		c.cleanups = c.cleanups[:last]
		f()
	}
}
