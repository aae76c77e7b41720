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
	busy  atomic.Bool  // a message is processed, so that nobody reads the next one
	began time.Time

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (l *liveness) heard() { l.last.Store(int64(time.Since(l.began))) }

// process calls f, which processes a message. What f takes is no silence of the switch: its next messages wait.
func (l *liveness) process(f func()) {
	l.busy.Store(true)
	f()
	l.heard()
	l.busy.Store(false)
}

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
	l := &c.alive
	w := watcher{interval: interval, timeout: timeout, tick: min(interval, timeout) / ticks, due: time.Since(l.began) + interval}
	var look func()
	look = func() {
		if l.busy.Load() {
			l.heard()
		}
		now, last := time.Since(l.began), time.Duration(l.last.Load())
		switch w.look(now, last) {
		case dead:
			c.end(ErrSilent)
			return
		case ask:
			_ = c.Send(&openflow.EchoRequest{}) // an error has ended the session
		}
		l.after(w.due-now, look)
	}
	l.after(interval, look)
}

// ticks is how often the time of the last message is looked at within the interval or the timeout, from when the switch is asked.
const ticks = 4

// verdict is what follows from a look at the time of the last message.
type verdict int

const (
	wait verdict = iota
	ask          // whether the switch is alive
	dead
)

// watcher decides whether a switch is alive, by looks at the times that it says. A look that comes late shows that the controller itself has not run: it
// was stopped, its machine was suspended, or was busy. Nobody has read what the switch sent meanwhile, so that this time is no silence
// of the switch. Times are since the session began.
type watcher struct {
	interval, timeout, tick time.Duration

	due    time.Duration // the time of the next look
	last   time.Duration // that of the last message, at the last look
	absent time.Duration // for how long the controller has not run since the last message
	asked  bool          // since the last message
}

// look takes the present time and that of the last message.
func (w *watcher) look(now, last time.Duration) verdict {
	if last != w.last {
		w.last, w.absent, w.asked = last, 0, false
	}
	if now-w.due > w.tick { // on a machine that is busy it is late by less
		w.absent += max(0, now-max(w.due, last))
	}
	silent := now - last - w.absent
	v := wait
	switch {
	case silent >= w.interval+w.timeout:
		v = dead
	case silent >= w.interval && !w.asked:
		w.asked, v = true, ask
	}
	w.due = now + w.tick
	if !w.asked { // a look each tick would take a thousand switches a tenth of a processor
		w.due = now + max(w.tick, w.interval-silent)
	}
	return v
}
