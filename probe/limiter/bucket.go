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

// emptied is how many bytes came beyond the rate until a train's bucket was empty.
func (t *tail) emptied(rate float64) float64 {
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
	if n == 0 || sum/n < most-mostOff(rate, most) {
		return most
	}
	return sum / n
}

// mostOff is by how much what came may differ from what the bucket gave, if nobody
// else has a part of it: two stamps, and a part of what it is.
func mostOff(rate, bytes float64) float64 {
	return math.Hypot(2*stampError*rate/8e9, exactly*bytes) + leastOff
}

const (
	// exactly and leastOff, in bytes, are of buckets that nobody shares.
	exactly, leastOff = 0.003, 150
	// jittery is what 98 % of small packets' delays differ by from one to the next, in
	// ns, where others are: the stamps alone make 7 us of it.
	jittery = 9e3
	// alone is how close what came is to the token rate if nobody shares it.
	alone = 0.995
	// mostOthers is the part of a policer's rate that others come at, at the most.
	mostOthers = 0.5
)

// others tells whether there is cross traffic: in small packets' delays, or in what
// is missing of the rate.
func (e *evidence) others(t *tail, rate float64) bool {
	return t.rate < alone*rate*(1-e.loss) || e.shared
}

// jitters tells whether small packets' delays vary.
func (e *evidence) jitters() bool {
	for i := range e.light {
		v := &e.light[i]
		var steps []float64
		for j := 1; j < len(v.at); j++ {
			steps = append(steps, v.delay(j)-v.delay(j-1))
		}
		if quantile(steps, 0.99)-quantile(steps, 0.01) > jittery {
			return true
		}
	}
	return false
}

// shaperSize is the size of a bucket that shapes, by the first train that emptied it.
func (e *evidence) shaperSize(rate float64) probe.Estimate {
	for i := range e.tails {
		t := &e.tails[i]
		if t.rate > 1.1*rate || t.v.asked > 0 && !t.limited() {
			continue
		}
		found := t.emptied(rate)
		b := math.Max(whole(e.spells, t.took.at[0], rate, found), t.v.frame)
		off := mostOff(rate, b) + e.loss*b
		if e.others(e.longest, rate) {
			// They had a part of it, and of what trains before left.
			return probe.Estimate{Value: b, Low: math.Max(found-off, 0), AtLeast: true}
		}
		return within(b, off)
	}
	return probe.CannotTell("no train shows the bucket's end")
}

// policerSize is that of a bucket that drops, by the first train of which packets were
// dropped. How long they took to reach it is between the time they were sent in and
// that in which they came.
func (e *evidence) policerSize(rate, most float64) probe.Estimate {
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
		if e.shared {
			// Also of the rate: what came of it is the least that is known.
			least := bytes - most*math.Max(v.sent[t.onset-1]-v.sent[0], v.at[last]-v.at[0])/8e9
			b := whole(e.spells, v.at[0], rate, math.Max(sent, came))
			return probe.Estimate{Value: b, Low: math.Max(least-v.frame, 0), AtLeast: true}
		}
		high := whole(e.spells, v.at[0], rate, math.Max(sent, came)) + v.frame
		low := math.Max(whole(e.spells, v.at[0], rate, math.Max(math.Min(sent, came), 0))-v.frame, 0)
		return probe.Estimate{Value: (low + high) / 2, Low: low, High: high}
	}
	return probe.CannotTell("the bucket was empty before the first train")
}

// policedRate is a policer's: what came of each train that was paced to another rate.
func (e *evidence) policedRate(best *tail) probe.Estimate {
	var parts []part
	var most part
	for i := range e.tails {
		t := &e.tails[i]
		if !t.policed() || t.v.asked == 0 && best.v.asked > 0 {
			continue
		}
		n := 0.0
		for _, i := range t.v.n {
			if i >= t.onset {
				n++
			}
		}
		off := math.Hypot(math.Sqrt(e.loss*(1-e.loss)/n), 0.5/n)
		one := part{math.Min(t.v.offered(), e.link), t.after, t.after * off}
		if parts = append(parts, one); one.p > most.p {
			most = one
		}
	}
	all, sd := everything(parts)
	off, high := z90*sd, math.Max(all, most.got*(1+mostOthers*most.got/most.p))
	lost := 1 - e.loss/2 // before the policer, or behind it
	off = math.Hypot(off, all*e.loss/2)
	low := math.Min(all, most.got)
	return probe.Estimate{Value: all / lost, Low: (low - off) / lost, High: (high + off) / lost}
}
