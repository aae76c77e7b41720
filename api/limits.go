package api

import (
	"context"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"headgate/store"
)

// ordinary is how many requests a second a token may make; one may make two seconds' at once.
const ordinary = 50

// limits are buckets of tokens, by the id of who asks.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// mostBuckets is when those that were not used are forgotten, all at once: who was in the middle
// of a second has it anew.
const mostBuckets = 10_000

// take takes a request in, or says in how many seconds it may be made.
func (l *limits) take(p store.Token, perSecond int) (wait int) {
	if perSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets == nil || len(l.buckets) >= mostBuckets {
		l.buckets = map[string]*rate.Limiter{}
	}
	b := l.buckets[p.ID]
	if b == nil || b.Limit() != rate.Limit(perSecond) {
		b = rate.NewLimiter(rate.Limit(perSecond), 2*perSecond)
		l.buckets[p.ID] = b
	}
	if b.Allow() {
		return 0
	}
	return int(math.Ceil(1 / float64(perSecond)))
}

// requests is how many one may make a second; 0 is no bound, for operators.
func (s *Server) requests(ctx context.Context, p store.Token) int {
	if p.Tenant == "" {
		return 0
	}
	doc, ok, err := s.Store.Get(ctx, store.Key(store.Tenants, p.Tenant), 0)
	var t store.Tenant
	if err != nil || !ok || doc.Into(&t) != nil || t.Requests == 0 {
		return ordinary
	}
	return t.Requests
}
