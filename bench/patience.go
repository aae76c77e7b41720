package bench

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// patience is the remaining time to wait for an idle machine.
type patience struct {
	mu   sync.Mutex
	left time.Duration
}

// glance is the duration of one check of the machine: with two processors a hundred ticks, which
// distinguish 10 % from none.
const glance = 500 * time.Millisecond

// wait returns when the machine is idle, or patience is used up. It keeps the processors busy while it
// checks, because a hypervisor takes no time from an idle machine.
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

// spin keeps every processor busy for a time.
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

// spend takes d from the remaining time, and reports whether there was enough.
func (p *patience) spend(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left < d {
		return false
	}
	p.left -= d
	return true
}
