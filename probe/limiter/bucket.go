package limiter

import (
	"math"
	"slices"

	"headgate/probe"
)

// spell is a time in which tokens were spent: a train's.
type spell struct{ from, to, bytes float64 }

// spells are those of all that came, in order.
func spells(views ...[]view) (out []spell) {
	for _, some := range views {
		for i := range some {
			v := &some[i]
			if n := len(v.at); n > 0 {
				out = append(out, spell{v.at[0], v.at[n-1], float64(n) * v.frame})
			}
		}
	}
	slices.SortFunc(out, func(a, b spell) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	return out
}

// whole is the size of a bucket that was full before all, and held found bytes as the
// train at from began; nothing before that emptied it. Trains take tokens, and the
// rate gives them back.
func whole(before []spell, from, rate, found float64) float64 {
	held := func(size float64) float64 {
		tokens, at := size, math.Inf(-1)
		for _, s := range before {
			if s.from >= from {
				break
			}
			if !math.IsInf(at, -1) {
				tokens = math.Min(size, tokens+rate*(s.from-at)/8e9)
			}
			tokens = math.Min(size, math.Max(0, tokens-s.bytes+rate*(s.to-s.from)/8e9))
			at = s.to
		}
		if !math.IsInf(at, -1) {
			tokens = math.Min(size, tokens+rate*(from-at)/8e9)
		}
		return tokens
	}
	low, high := found, found
	for _, s := range before {
		if s.from < from {
			high += s.bytes
		}
	}
	for range 60 {
		if middle := (low + high) / 2; held(middle) < found {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// emptied is how many bytes came beyond the rate until a train's bucket was empty,
// and, where others had a part of them, false.
func (t *tail) emptied(rate float64) (found float64, alone bool) {
	v := t.took
	most, sum, n := 0.0, 0.0, 0.0
	for j := range v.at {
		if t.onset >= 0 && v.n[j] >= t.onset {
			break
		}
		b := float64(v.n[j]+1)*v.frame - rate*(v.at[j]-v.at[0])/8e9
		most = math.Max(most, b)
		if j >= max(t.knee, 1) {
			sum += b
			n++
		}
	}
	if n == 0 || sum/n < 0.95*most-2*v.frame {
		return most, false
	}
	return sum / n, true
}

// shaperSize is the size of a bucket that shapes, by the first train that emptied it.
func (e *evidence) shaperSize(rate float64) probe.Estimate {
	for i := range e.tails {
		t := &e.tails[i]
		if t.rate > 1.1*rate || t.v.asked > 0 && !t.limited() {
			continue
		}
		found, alone := t.emptied(rate)
		b := math.Max(whole(e.spells, t.took.at[0], rate, found), t.v.frame)
		if !alone {
			return probe.Estimate{Value: b, Low: b, AtLeast: true}
		}
		return within(b, math.Max(0.005*b, t.v.frame/2))
	}
	return probe.CannotTell("no train shows the bucket's end")
}

// policerSize is that of a bucket that drops, by the first train of which packets were
// dropped. How long they took to reach it is between the time they were sent in and
// that in which they came.
func (e *evidence) policerSize(rate float64) probe.Estimate {
	for i := range e.tails {
		t := &e.tails[i]
		if t.onset < leastPiece {
			continue
		}
		v := t.v
		last := 0
		for j, n := range v.n {
			if n < t.onset {
				last = j
			}
		}
		bytes := float64(t.onset) * v.frame
		sent := bytes - rate*(v.sent[t.onset-1]-v.sent[0])/8e9
		came := bytes - rate*(v.at[last]-v.at[0])/8e9
		high := whole(e.spells, v.at[0], rate, math.Max(sent, came)) + v.frame
		low := math.Max(whole(e.spells, v.at[0], rate, math.Max(math.Min(sent, came), 0))-v.frame, 0)
		return probe.Estimate{Value: (low + high) / 2, Low: low, High: high}
	}
	return probe.CannotTell("the bucket was empty before the first train")
}
