package network

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
)

// Bounds on events, chosen for Headgate.
const (
	// maxEvents is how many events are kept: a network that is connected has some hundred.
	maxEvents = 1000
	// repeatMemory is after what time the same refusal is another event: what causes it has tried every minute, or was gone.
	repeatMemory = 10 * time.Minute
)

// events are the last events. The zero value has none.
type events struct {
	mu    sync.Mutex
	ring  []kept
	next  int            // of the ring, once it is full
	last  map[string]int // of events that repeat, by their keys, where in the ring the newest is
	since time.Time      // from when on there is no gap
}

// kept is an event, with a key if it can repeat: that of its cause.
type kept struct {
	fabric.Event
	key string
}

// begin notes that a term begins: of the time before events are missing, if another controller was the leader.
func (e *events) begin(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = now
}

// add keeps an event, and logs those of switches and links. Of hosts there may be thousands.
func (e *events) add(one fabric.Event) {
	key := ""
	if one.Kind.Repeats() {
		key = one.Text
		if e.repeat(key, one.Time) {
			return
		}
	}
	e.addOf(key, one)
}

// repeat counts an event that has happened again, and reports whether it has.
func (e *events) repeat(key string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.last[key]
	if !ok || now.Sub(e.ring[at].Recent()) >= repeatMemory {
		return false
	}
	e.ring[at].Count, e.ring[at].Last = max(e.ring[at].Count, 1)+1, now
	return true
}

// addOf is add of an event that did not happen before.
func (e *events) addOf(key string, one fabric.Event) {
	level := slog.LevelDebug
	if kind := string(one.Kind); strings.HasPrefix(kind, "switch-") || strings.HasPrefix(kind, "link-") {
		level = slog.LevelInfo
	}
	slog.Log(context.Background(), level, "network", "kind", one.Kind, "event", one.Text)
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.next
	if len(e.ring) < maxEvents {
		at = len(e.ring)
		e.ring = append(e.ring, kept{one, key})
	} else {
		lost := e.ring[at]
		if e.last[lost.key] == at {
			delete(e.last, lost.key)
		}
		e.ring[at] = kept{one, key}
		e.next = (at + 1) % maxEvents
		if oldest := e.ring[e.next].Time; !lost.Time.Before(e.since) && oldest.After(e.since) {
			e.since = oldest
		}
	}
	if key != "" {
		if e.last == nil {
			e.last = map[string]int{}
		}
		e.last[key] = at
	}
}

// all returns the events, the oldest first, and from when on there is no gap between them.
func (e *events) all() (all []fabric.Event, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range slices.Concat(e.ring[e.next:], e.ring[:e.next]) {
		all = append(all, one.Event)
	}
	return all, e.since
}
