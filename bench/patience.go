package bench

import (
	"context"
	"sync"
	"time"
)

// patience is time to spend on having the machine for ourselves.
type patience struct {
	mu   sync.Mutex
	left time.Duration
}

// glance is how long one look at the others' processor time lasts: ten ticks of
// it tell 10 % from none.
const glance = time.Second

// wait returns when others leave the machine alone, or patience is at its end.
func (p *patience) wait(ctx context.Context) {
	for ctx.Err() == nil && p.spend(glance) {
		before := othersCPU()
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
		if othersCPU()-before < disturbed*glance.Seconds() {
			return
		}
	}
}

// spend takes d of what is left, and says whether there was as much.
func (p *patience) spend(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left < d {
		return false
	}
	p.left -= d
	return true
}
