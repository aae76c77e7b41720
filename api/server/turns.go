package server

import (
	"context"
	"sync"
)

// turns let requests of one tenant wait for each other, each for one of another tenant at most. A decision about a reservation takes up to 60 ms
// (fabric/reserve), and decisions have one order: without turns the 50 requests a second that a tenant may send would
// take all the time. With them each other tenant waits for one of them at most. The zero value is ready.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{} // has an element while a request of the tenant has its turn
}

// take waits until no other request of a tenant has its turn, and takes it until end is called. Operators do not wait. The
// error is ctx's.
func (t *turns) take(ctx context.Context, tenant string) (end func(), err error) {
	if tenant == "" {
		return func() {}, nil
	}
	t.mu.Lock()
	turn := t.of[tenant]
	if turn == nil {
		if t.of == nil {
			t.of = map[string]chan struct{}{}
		}
		turn = make(chan struct{}, 1)
		t.of[tenant] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
