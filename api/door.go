package api

import (
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"headgate/store"
)

// Ours: each token that is not good costs the store a read, and a good one that is guessed costs
// everything.
const (
	// mistakes a second are one address's to make, and mostMistakes at once: a program whose token has
	// just ended goes on for a while.
	mistakes, mostMistakes = 10, 100
	// goodFor is how long a token that was good is asked about whatever else its address does: others
	// may be behind it.
	goodFor = time.Minute
	// mostRemembered is when addresses, and tokens, are forgotten, all at once.
	mostRemembered = 10_000
)

// door is where tokens are shown.
type door struct {
	mu   sync.Mutex
	bad  map[netip.Prefix]*rate.Limiter
	good map[string]time.Time // by the token's key
}

// wait is how many seconds who shows a token has to wait before it is looked at, because too many of
// the address were not good.
func (d *door) wait(from netip.Prefix, key string, now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.bad[from]
	if b == nil || now.Sub(d.good[key]) < goodFor || b.TokensAt(now) >= 1 {
		return 0
	}
	return int(math.Ceil((1 - b.TokensAt(now)) / mistakes))
}

// was notes what a token was.
func (d *door) was(from netip.Prefix, key string, good bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if good {
		if d.good == nil || len(d.good) >= mostRemembered {
			d.good = map[string]time.Time{}
		}
		d.good[key] = now
		return
	}
	delete(d.good, key)
	if d.bad == nil || len(d.bad) >= mostRemembered {
		d.bad = map[netip.Prefix]*rate.Limiter{}
	}
	b := d.bad[from]
	if b == nil {
		b = rate.NewLimiter(mistakes, mostMistakes)
		d.bad[from] = b
	}
	b.AllowN(now, 1)
}

// neighbours are whoever can have an address as well: of IPv6 a network.
func neighbours(remote string) netip.Prefix {
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

// known is whose a token is that a request shows.
func (s *Server) known(r *http.Request, secret string) (store.Token, error) {
	key, _ := tokenKey(secret)
	from := neighbours(r.RemoteAddr)
	if wait := s.door.wait(from, key, time.Now()); wait > 0 {
		return store.Token{}, &Refusal{Status: http.StatusTooManyRequests, Detail: "too many tokens of this address were not good: ask again later", RetryAfter: wait}
	}
	p, err := s.whose(r.Context(), secret)
	if refusal := (*Refusal)(nil); err == nil || errors.As(err, &refusal) {
		s.door.was(from, key, err == nil, time.Now())
	}
	return p, err
}
