package session

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// liveness asks a switch that sends nothing whether it is alive (section 6.4).
type liveness struct {
	last  atomic.Int64 // when something arrived, in nanoseconds since began
	began time.Time

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (l *liveness) heard() { l.last.Store(int64(time.Since(l.began))) }

func (l *liveness) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// after calls f after a time, unless the session ends before.
func (l *liveness) after(d time.Duration, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.timer = time.AfterFunc(d, f)
	}
}

// Silent returns for how long the switch has sent nothing.
func (c *Conn) Silent() time.Duration {
	return time.Since(c.alive.began) - time.Duration(c.alive.last.Load())
}

// watch begins to look whether the switch is alive.
func (c *Conn) watch() {
	interval, timeout := cmp.Or(c.options.EchoInterval, DefaultEchoInterval), cmp.Or(c.options.EchoTimeout, DefaultEchoTimeout)
	tick := min(interval, timeout) / ticks
	l := &c.alive
	asked := int64(-1) // what last was at the echo request
	var look func()
	look = func() {
		last := l.last.Load()
		silent := c.Silent()
		if silent >= interval+timeout {
			c.end(ErrSilent)
			return
		}
		if silent >= interval && asked != last {
			asked = last
			_ = c.Send(&openflow.EchoRequest{}) // an error has ended the session
		}
		l.after(tick, look)
	}
	l.after(tick, look)
}

// ticks is how often the time of the last message is looked at within the interval or the timeout.
const ticks = 4
