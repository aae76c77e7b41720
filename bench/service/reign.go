package service

import (
	"context"
	"slices"
	"sync"
	"time"
)

// reign records which controllers are the leader at which times. Each is queried twenty times a second
// on its own goroutine: a stopped one does not answer, and must not delay the others.
type reign struct {
	all  sync.WaitGroup
	next []*control // the expected leaders

	mu    sync.Mutex
	said  map[*control]time.Time // when each was last the leader
	twice []pair                 // one was the leader before and after another was
	looks []look
}

// pair is two leaders at one time.
type pair struct {
	at  time.Time
	who string
}

// look is whether one of the expected leaders was the leader.
type look struct {
	at  time.Time
	led bool
}

// lookAtReign is the time between two queries.
const lookAtReign = 50 * time.Millisecond

// watchReign queries all controllers until ctx ends.
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

// led reports whether one of them has been the leader since a time.
func (r *reign) led(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.looks, func(l look) bool { return l.led && l.at.After(since) })
}

// without returns the longest time since then without a leader among them.
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
