package server

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"headgate.dev/headgate/store"
)

// defaultRateLimit is the default rate limit of a tenant: requests per second to one controller, by all of the
// tenant's tokens together. The burst is two seconds of requests.
const defaultRateLimit = 50

// rateLimits does the rate limiting of API clients. It has a token bucket for each tenant, because a tenant can create any number of tokens, and one for
// each token without a tenant.
type rateLimits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	// owners are the keys of buckets by those of tokens, as they were last found valid.
	owners map[string]string
}

// exhausted returns the seconds that the owner of a token must wait, if the token was valid before and its bucket is empty: then nothing is read from the store. 0
// means that the token is looked up.
func (l *rateLimits) exhausted(tokenKey string) (wait int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[l.owners[tokenKey]]
	if b == nil || b.Tokens() >= 1 {
		return 0
	}
	return waitFor(b)
}

// waitFor returns the seconds until a bucket has a request.
func waitFor(b *rate.Limiter) int { return int(math.Ceil((1 - b.Tokens()) / float64(b.Limit()))) }

// ownerOf returns who a token counts for: its tenant, or itself without one.
func ownerOf(p store.Token) string { return cmp.Or(p.Tenant, p.ID) }

// remember notes whose bucket a token takes from.
func (l *rateLimits) remember(tokenKey string, p store.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners == nil || len(l.owners) >= maxBuckets {
		l.owners = map[string]string{}
	}
	l.owners[tokenKey] = ownerOf(p)
}

// tooMany refuses a request above the rate limit.
func tooMany(wait int) *Refusal {
	return &Refusal{Status: http.StatusTooManyRequests, Detail: "rate limit exceeded: send fewer requests per second", RetryAfter: wait}
}

// maxBuckets is the number of buckets at which full ones are removed. A full bucket is equal to a new one.
const maxBuckets = 10_000

// take admits a request and returns 0, or returns the seconds to wait before a retry. perSecond 0 means no
// rate limit.
func (l *rateLimits) take(p store.Token, perSecond int) (wait int) {
	if perSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	who := ownerOf(p)
	b := l.buckets[who]
	if b == nil || b.Limit() != rate.Limit(perSecond) {
		if len(l.buckets) >= maxBuckets {
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
	return waitFor(b)
}

// charge takes requests from the bucket of a caller that take has admitted, although it may not have as many: the next requests wait for longer.
func (l *rateLimits) charge(p store.Token, requests int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[ownerOf(p)]; b != nil && requests > 0 {
		b.ReserveN(time.Now(), min(requests, b.Burst()))
	}
}

// rateLimitOf returns the caller's rate limit in requests per second; 0 means no rate limit (no tenant).
func (s *Server) rateLimitOf(ctx context.Context, p store.Token) int {
	if p.Tenant == "" {
		return 0
	}
	doc, ok, err := s.Store.Get(ctx, store.Key(store.Tenants, p.Tenant), 0)
	var t store.Tenant
	if err != nil || !ok || doc.Into(&t) != nil || t.Requests == 0 {
		return defaultRateLimit
	}
	return t.Requests
}
