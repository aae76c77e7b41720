package limiter

import (
	"math"

	"headgate.dev/headgate/probe"
)

// shaped reports whether a train ended slower than the path's link, at the rate of a
// shaper: after a head, or at the same rate as another train.
func (e *evidence) shaped(t *tail) bool {
	if !t.limited() || t.served() >= e.linkThreshold(t) {
		return false
	}
	return t.headStands() || len(e.tails) == 1 || len(e.like(t)) > 0
}

// like returns the other trains that were limited to the same rate.
func (e *evidence) like(t *tail) (out []*tail) {
	for i := range e.tails {
		if o := &e.tails[i]; o != t && o.limited() && math.Abs(o.served()/t.served()-1) < agree {
			out = append(out, o)
		}
	}
	return out
}

// linkThreshold returns the rate below which a train is slower than the link.
func (e *evidence) linkThreshold(t *tail) float64 {
	if t.v.asked > 0 || t.served() > noisy {
		// The slower a train, the larger the fraction of a link that cross traffic can
		// use.
		return muchSlower * e.link
	}
	head := t.headStands()
	for _, o := range e.like(t) {
		head = head || o.headStands()
	}
	if !head && (e.shared || t.q.share < evenly) {
		// Without a head, the link is known only from short bursts, which cross traffic
		// compresses.
		return muchSlower * e.link
	}
	return slower * e.link
}

// tokenRate returns the rate at which the tail's packets are served.
func (t *tail) tokenRate() probe.Estimate {
	if !t.exact {
		return within(t.rate, 0.02*t.rate)
	}
	rate := t.v.frame * 8e9 / t.q.gap
	return within(rate, rate*t.q.off/t.q.gap)
}
