package service

import (
	"context"
	"slices"
	"sync"
	"time"
)

// reign is who says when that it leads. Each is asked twenty times a second, by itself: one that
// stands still does not answer, and must not keep us from the others.
type reign struct {
	all  sync.WaitGroup
	next []*control // those who are to lead

	mu    sync.Mutex
	said  map[*control]time.Time // when each last said that it leads
	twice []pair                 // one said so before and after another did
	looks []look
}

// pair are two at one time.
type pair struct {
	at  time.Time
	who string
}

// look is whether one of those who were to lead did.
type look struct {
	at  time.Time
	led bool
}

// lookAtReign is the time between two looks.
const lookAtReign = 50 * time.Millisecond

// watchReign looks at all until ctx ends.
func watchReign(ctx context.Context, all, next []*control) *reign {
	r := &reign{next: next, said: map[*control]time.Time{}}
	for _, c := range all {
		r.all.Go(func() {
			for ctx.Err() == nil {
				leads := len(leading(ctx, []*control{c})) > 0
				if ctx.Err() == nil {
					r.note(c, leads)
				}
				time.Sleep(lookAtReign)
			}
		})
	}
	return r
}

func (r *reign) note(c *control, leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if leads {
		before, led := r.said[c]
		for other, at := range r.said {
			if other != c && led && at.After(before) {
				r.twice = append(r.twice, pair{at, other.name + " and " + c.name})
			}
		}
		r.said[c] = now
	} else {
		delete(r.said, c)
	}
	r.looks = append(r.looks, look{now, leads && slices.Contains(r.next, c)})
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
