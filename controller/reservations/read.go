package reservations

import (
	"context"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// Between returns the reservations that have a moment in [from, to), by tenant and name. Their slices must not be modified.
func (o *Owner) Between(from, to time.Time) []reserve.Reservation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.book.Between(from, to)
}

// Carried is Between for the reservations that relay agents carry.
func (o *Owner) Carried(from, to time.Time) []reserve.Reservation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.book.Carried(from, to)
}

// Now returns the time by which reservations begin and end.
func (o *Owner) Now() time.Time { return o.now() }

// Active returns the reservations that have bandwidth now, by tenant and name: those that have begun and have not ended,
// also if they are degraded. Their slices must not be modified.
func (o *Owner) Active() []reserve.Reservation {
	now := o.now()
	return o.Between(now, now.Add(1))
}

// Topology returns the network for which the reservations are planned.
func (o *Owner) Topology() *fabric.Topology {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.top
}

// Calendar returns the rate that is reserved on a link over time, and the rate that can be reserved (reserve.Book.Calendar).
func (o *Owner) Calendar(link fabric.LinkID, from, to time.Time) (steps []reserve.Step, limit unit.Rate, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.book.Calendar(link, from, to)
}

// Watch returns a channel that has a value after each change of the reservations, until ctx is done. It holds one value:
// several changes can be one. A reservation that begins or ends is no change.
func (o *Owner) Watch(ctx context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	o.mu.Lock()
	o.watchers[w] = struct{}{}
	o.mu.Unlock()
	context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.watchers, w)
	})
	return w
}

// announce signals the watchers.
func (o *Owner) announce() {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for w := range o.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}
