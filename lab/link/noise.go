package link

import (
	"math/rand/v2"
	"time"
)

// noise draws the random effects of the wire on each segment.
type noise struct {
	loss, jitter *rand.Rand
	bad          bool
}

// loses reports whether the next segment is lost.
func (n *noise) loses(l Loss) bool {
	if !l.TwoStates() {
		return l.Probability > 0 && n.loss.Float64() < l.Probability
	}
	leave, lose := l.ToBad, l.Good
	if n.bad {
		leave = l.ToGood
	}
	if n.loss.Float64() < leave {
		n.bad = !n.bad
	}
	if n.bad {
		lose = l.Bad
	}
	return lose > 0 && n.loss.Float64() < lose
}

// delay returns how long the next segment is on the wire.
func (n *noise) delay(s *Spec) int64 {
	j := float64(s.Jitter.Amount)
	switch {
	case j == 0:
		return int64(s.Delay)
	case s.Jitter.Normal:
		j *= min(max(n.jitter.NormFloat64(), -3), 3)
	default:
		j *= 2*n.jitter.Float64() - 1
	}
	return max(int64(s.Delay+time.Duration(j)), 0)
}

// wake returns when an Active sender runs next, at or later.
func (a *Active) wake(zero, at int64) int64 {
	period := int64(a.On + a.Off)
	phase := (at - zero) % period
	if phase < int64(a.On) {
		return at
	}
	return at - phase + period
}

// receiver delivers segments in the batches of a Suspension.
type receiver struct {
	taken int   // since the last pause
	until int64 // earliest time of the next delivery
}

func (r *receiver) took(s *Suspension, at int64) {
	if s == nil {
		return
	}
	if r.taken++; r.taken >= s.Packets {
		r.taken, r.until = 0, at+int64(s.Time)
	}
}
