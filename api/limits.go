package api

import (
	"cmp"
	"context"
	"maps"
	"math"
	"sync"

	"golang.org/x/time/rate"

	"headgate/store"
)

// ordinary is how many requests a second a tenant may make of a controller, by all of its tokens
// together; it may make two seconds' at once.
const ordinary = 50

// limits are buckets, by who asks: a tenant, which makes tokens as it likes, or one with a token.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// mostBuckets is when those are forgotten that are full again, as a new one is.
const mostBuckets = 10_000

// take takes a request in, or says in how many seconds it may be made.
func (l *limits) take(p store.Token, perSecond int) (wait int) {
	if perSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	who := cmp.Or(p.Tenant, p.ID)
	b := l.buckets[who]
	if b == nil || b.Limit() != rate.Limit(perSecond) {
		if len(l.buckets) >= mostBuckets {
			maps.DeleteFunc(l.buckets, func(_ string, b *rate.Limiter) bool { return b.Tokens() >= float64(b.Burst()) })
		}
		if l.buckets == nil {
			l.buckets = map[string]*rate.Limiter{}
		}
		b = rate.NewLimiter(rate.Limit(perSecond), 2*perSecond)
		l.buckets[who] = b
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
