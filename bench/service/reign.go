package service

import (
	"context"
	"slices"
	"sync"
	"time"
)

// reign is who says when that it leads, as it is asked twenty times a second.
type reign struct {
	done chan struct{}

	mu    sync.Mutex
	twice int // times at which two said so
	looks []look
}

// look is whether one of those who were to lead did.
type look struct {
	at  time.Time
	led bool
}

// lookAtReign is the time between two looks.
const lookAtReign = 50 * time.Millisecond

// watchReign looks at all until ctx ends, for those who are to lead.
func watchReign(ctx context.Context, all, next []*control) *reign {
	r := &reign{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			now := leading(ctx, all)
			if ctx.Err() != nil {
				return // it was not looked to the end
			}
			r.mu.Lock()
			if len(now) > 1 {
				r.twice++
			}
			r.looks = append(r.looks, look{time.Now(), slices.ContainsFunc(now, func(c *control) bool { return slices.Contains(next, c) })})
			r.mu.Unlock()
			time.Sleep(lookAtReign)
		}
	}()
	return r
}

// led tells whether one of them has led since then.
func (r *reign) led(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.looks, func(l look) bool { return l.led && l.at.After(since) })
}

// without is the longest time since then in which none of them led.
func (r *reign) without(since time.Time) (longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := since
	for _, l := range r.looks {
		switch {
		case l.at.Before(since):
			continue
		case l.led:
			longest = max(longest, l.at.Sub(from))
			from = l.at
		}
	}
	return max(longest, r.looks[len(r.looks)-1].at.Sub(from))
}
