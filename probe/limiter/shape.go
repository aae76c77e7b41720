package limiter

import (
	"math"

	"headgate/probe"
)

// shaped tells whether a train ended slower than the path's link, and at a rate of
// its own: after a head, or the same as another train's.
func (e *evidence) shaped(t *tail) bool {
	if !t.limited() || t.served() >= e.border(t) {
		return false
	}
	return t.headStands() || len(e.tails) == 1 || len(e.like(t)) > 0
}

// like are the other trains that were limited to the same rate.
func (e *evidence) like(t *tail) (out []*tail) {
	for i := range e.tails {
		if o := &e.tails[i]; o != t && o.limited() && math.Abs(o.served()/t.served()-1) < agree {
			out = append(out, o)
		}
	}
	return out
}

// border is the rate below which a train is slower than the link.
func (e *evidence) border(t *tail) float64 {
	if t.v.asked > 0 || t.served() > noisy {
		// The slower a train, the larger the part of a link that others take.
		return muchSlower * e.link
	}
	head := t.headStands()
	for _, o := range e.like(t) {
		head = head || o.headStands()
	}
	if !head && (e.shared || t.q.share < evenly) {
		// Without a head the link is known by short bursts alone, which others press.
		return muchSlower * e.link
	}
	return slower * e.link
}

// tokenRate is what serves the tail's packets.
func (t *tail) tokenRate() probe.Estimate {
	if !t.exact {
		return within(t.rate, 0.02*t.rate)
	}
	rate := t.v.frame * 8e9 / t.q.gap
	return within(rate, rate*t.q.off/t.q.gap)
}
