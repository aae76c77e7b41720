package live

import (
	"time"

	"headgate.dev/headgate/fabric"
)

// Constants of buckets, chosen for Headgate: a host that starts sends some ten frames of which the controller learns.
const (
	rate, burst = 200, 400
)

// buckets bound the frames of each port that the controller looks at, in frames per second, so that one port slows no other.
type buckets map[fabric.PortID]*bucket

type bucket struct {
	tokens float64
	at     time.Time
	noted  time.Time
}

func (b buckets) of(p fabric.PortID, now time.Time) *bucket {
	one := b[p]
	if one == nil {
		one = &bucket{tokens: burst, at: now}
		b[p] = one
	}
	return one
}

// take reports whether a frame of a port may be looked at.
func (b buckets) take(p fabric.PortID, now time.Time) bool {
	one := b.of(p, now)
	one.tokens = min(burst, one.tokens+rate*now.Sub(one.at).Seconds())
	one.at = now
	if one.tokens < 1 {
		return false
	}
	one.tokens--
	return true
}

// noteInterval is how often the same complaint of a port is repeated.
const noteInterval = time.Minute

// noteOnce reports whether a port's complaint should be passed on. n.mu must be held.
func (n *Network) noteOnce(p fabric.PortID, now time.Time) bool {
	one := n.unknown.of(p, now)
	if !one.noted.IsZero() && now.Sub(one.noted) < noteInterval {
		return false
	}
	one.noted = now
	return true
}
