package bench

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// patience is time to spend on having the machine for ourselves.
type patience struct {
	mu   sync.Mutex
	left time.Duration
}

// glance is how long one look at the machine lasts: with two processors a hundred
// ticks, which tell 10 % from none.
const glance = 500 * time.Millisecond

// wait returns when the machine is ours alone, or patience is at its end. It keeps
// the processors busy while it looks, because a hypervisor takes nothing away from
// a machine that wants nothing.
func (p *patience) wait(ctx context.Context) {
	for ctx.Err() == nil && p.spend(glance) {
		before := takenUntilNow()
		spin(glance)
		if !takenUntilNow().since(before, glance.Seconds()).disturbed() {
			return
		}
		if !p.spend(time.Second) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// spin wants every processor for a time.
func spin(d time.Duration) {
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for end := time.Now().Add(d); time.Now().Before(end); {
			}
		})
	}
	all.Wait()
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
