package network

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/fabric"
)

// maxEvents is how many events are kept: a network that is connected has some hundred.
const maxEvents = 1000

// events are the last events. The zero value has none.
type events struct {
	mu   sync.Mutex
	ring []fabric.Event
	next int // of the ring, once it is full
}

// add keeps an event, and logs those of switches and links. Of hosts there may be thousands.
func (e *events) add(one fabric.Event) {
	level := slog.LevelDebug
	if kind := string(one.Kind); strings.HasPrefix(kind, "switch-") || strings.HasPrefix(kind, "link-") {
		level = slog.LevelInfo
	}
	slog.Log(context.Background(), level, "network", "kind", one.Kind, "event", one.Text)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ring) < maxEvents {
		e.ring = append(e.ring, one)
		return
	}
	e.ring[e.next] = one
	e.next = (e.next + 1) % maxEvents
}

// all returns the events, the oldest first.
func (e *events) all() []fabric.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Concat(e.ring[e.next:], e.ring[:e.next])
}
