package server

import (
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"headgate.dev/headgate/store"
)

// Constants of the rate limit for invalid tokens, chosen by this project. Each invalid token costs a
// read of the store, and a guessed valid token gives away all that the token permits.
const (
	// invalidTokenRate is the number of invalid tokens per second that one address may send, and invalidTokenBurst
	// the burst: a program whose token has just expired goes on sending it for a while.
	invalidTokenRate, invalidTokenBurst = 10, 100
	// validTokenGrace is how long a token that was valid is accepted although its address exceeds the rate limit:
	// several clients may share the address.
	validTokenGrace = time.Minute
	// maxRemembered is the number of addresses, and of tokens, at which all of them are dropped.
	maxRemembered = 10_000
)

// tokenLimiter limits the rate of invalid tokens per source address.
type tokenLimiter struct {
	mu   sync.Mutex
	bad  map[netip.Prefix]*rate.Limiter // invalid tokens, by address
	good map[string]time.Time           // when a token was last valid, by the token's key
}

// wait returns the seconds that the client must wait before its token is checked, because its address
// has sent too many invalid tokens. 0 means that the token is checked now.
func (d *tokenLimiter) wait(from netip.Prefix, key string, now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.bad[from]
	if b == nil || now.Sub(d.good[key]) < validTokenGrace || b.TokensAt(now) >= 1 {
		return 0
	}
	return int(math.Ceil((1 - b.TokensAt(now)) / invalidTokenRate))
}

// record records whether a token was valid.
func (d *tokenLimiter) record(from netip.Prefix, key string, good bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if good {
		if d.good == nil || len(d.good) >= maxRemembered {
			d.good = map[string]time.Time{}
		}
		d.good[key] = now
		return
	}
	delete(d.good, key)
	if d.bad == nil || len(d.bad) >= maxRemembered {
		d.bad = map[netip.Prefix]*rate.Limiter{}
	}
	b := d.bad[from]
	if b == nil {
		b = rate.NewLimiter(invalidTokenRate, invalidTokenBurst)
		d.bad[from] = b
	}
	b.AllowN(now, 1)
}

// clientPrefix returns the prefix that the rate limit counts as one client: the IPv4 address, or the /64 of
// the IPv6 address, in which one client can use any address.
func clientPrefix(remote string) netip.Prefix {
	host, _, _ := net.SplitHostPort(remote)
	a, _ := netip.ParseAddr(host)
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// checkToken looks up the token of a request, subject to the rate limit for invalid tokens.
func (s *Server) checkToken(r *http.Request, secret string) (store.Token, error) {
	key, _ := tokenKey(secret)
	from := clientPrefix(r.RemoteAddr)
	if wait := s.tokenLimiter.wait(from, key, time.Now()); wait > 0 {
		return store.Token{}, &Refusal{Status: http.StatusTooManyRequests, Detail: "rate limit exceeded: too many invalid tokens from this address: retry later", RetryAfter: wait}
	}
	p, err := s.lookupToken(r.Context(), secret)
	if refusal := (*Refusal)(nil); err == nil || errors.As(err, &refusal) {
		s.tokenLimiter.record(from, key, err == nil, time.Now())
	}
	return p, err
}
