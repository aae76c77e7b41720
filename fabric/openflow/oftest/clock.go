package oftest

import (
	"container/heap"
	"sync"
	"time"
)

// timeline runs events in the order of their times, and events of one time in the order in which they were made, so that
// a test is deterministic: timers of one time would run in any order. The switches and hosts of a Network share one. Its
// lock protects all of them.
type timeline struct {
	mu     sync.Mutex
	events events
	made   uint64
	timer  *time.Timer
	armed  time.Time // when the timer fires; zero if it does not
	// changes counts what can change the way of packets: flows, groups, ports and cables.
	changes uint64
	frames  uint64 // that were sent
	shared  shared
	counted time.Time // up to when the streams have been counted, zero without any
}

// newID is that of a frame.
func (t *timeline) newID() uint64 {
	t.frames++
	return t.frames
}

// event is a function that runs at a time.
type event struct {
	at    time.Time
	order uint64
	f     func()
	index int // in events; -1 if it ran or was cancelled
}

// after makes an event that runs in d. The lock must be held, also while it runs.
func (t *timeline) after(d time.Duration, f func()) *event {
	return t.at(time.Now().Add(d), f)
}

func (t *timeline) at(when time.Time, f func()) *event {
	t.made++
	e := &event{at: when, order: t.made, f: f}
	heap.Push(&t.events, e)
	return e
}

// cancel keeps an event from running. It may be nil.
func (t *timeline) cancel(e *event) {
	if e != nil && e.index >= 0 {
		heap.Remove(&t.events, e.index)
	}
}

func (t *timeline) lock() { t.mu.Lock() }

// unlock runs the events that are due, and then unlocks.
func (t *timeline) unlock() {
	for len(t.events) > 0 && !t.events[0].at.After(time.Now()) {
		heap.Pop(&t.events).(*event).f()
	}
	t.arm()
	t.mu.Unlock()
}

// arm sets the timer to the next event.
func (t *timeline) arm() {
	switch {
	case len(t.events) == 0:
		if t.timer != nil {
			t.timer.Stop()
		}
		t.armed = time.Time{}
		return
	case t.events[0].at.Equal(t.armed):
		return
	}
	t.armed = t.events[0].at
	d := time.Until(t.armed)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, func() {
			t.lock()
			t.armed = time.Time{}
			t.unlock()
		})
	} else {
		t.timer.Reset(d)
	}
}

// events is a heap of events by time and order.
type events []*event

func (h events) Len() int { return len(h) }

func (h events) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}

func (h events) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds an event; it is called by container/heap.
func (h *events) Push(x any) {
	e := x.(*event)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop removes the last event; it is called by container/heap.
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
