package limiter

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// usage is the time of a train, in which tokens were used.
type usage struct{ from, to, bytes float64 }

// usages returns the times of all trains, in order.
func usages(views ...[]trainView) (out []usage) {
	for _, some := range views {
		for i := range some {
			v := &some[i]
			if n := len(v.at); n > 0 {
				out = append(out, usage{v.at[0], v.at[n-1], float64(n) * v.frame})
			}
		}
	}
	slices.SortFunc(out, func(a, b usage) int {
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

// bucketSize returns the size of a bucket that was full before all trains and held found bytes
// when the train at from began. No train before it emptied the bucket. Trains use tokens,
// and the rate refills them.
func bucketSize(before []usage, from, rate, found float64) float64 {
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

// emptied returns how many bytes arrived beyond the rate until a train had emptied the
// bucket.
func (t *tail) emptied(rate float64) float64 {
	v := t.took
	largest, sum, n := 0.0, 0.0, 0.0
	for j := range v.at {
		if t.onset >= 0 && v.n[j] >= t.onset {
			break
		}
		b := float64(v.n[j]+1)*v.frame - rate*(v.at[j]-v.at[0])/8e9
		largest = math.Max(largest, b)
		if j >= max(t.knee, 1) {
			sum += b
			n++
		}
	}
	if n == 0 || sum/n < largest-maxOff(rate, largest) {
		return largest
	}
	return sum / n
}

// maxOff returns by how much the measured bytes may differ from those of the bucket
// without cross traffic: the error of two timestamps, and a fraction of the bytes.
func maxOff(rate, bytes float64) float64 {
	return math.Hypot(2*stampError*rate/8e9, exactly*bytes) + minOff
}

const (
	// exactly and minOff, in bytes, are for buckets without cross traffic.
	exactly, minOff = 0.003, 150
	// jittery is the range of 98 % of the differences between consecutive delays of small
	// packets, in ns, that shows cross traffic: timestamp errors alone cause 7 us.
	jittery = 9e3
	// alone: a tail at this fraction of the token rate had no cross traffic.
	alone = 0.995
	// maxOthers is the assumed maximum of cross traffic at a policer, as a fraction of
	// the rate.
	maxOthers = 0.5
)

// others reports whether there is cross traffic: the delays of small packets vary, or a
// part of the rate is missing.
func (e *evidence) others(t *tail, rate float64) bool {
	return t.rate < alone*rate*(1-e.loss) || e.shared
}

// jitters reports whether the delays of small packets vary.
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

// shaperSize returns the bucket size of a shaper, from the first train that emptied the
// bucket.
func (e *evidence) shaperSize(rate float64) probe.Estimate {
	for i := range e.tails {
		t := &e.tails[i]
		if t.rate > 1.1*rate || t.v.asked > 0 && !t.limited() {
			continue
		}
		found := t.emptied(rate)
		b := math.Max(bucketSize(e.usages, t.took.at[0], rate, found), t.v.frame)
		off := maxOff(rate, b) + e.loss*b
		if e.others(e.longest, rate) {
			// Cross traffic used a part of the bucket, and of what earlier trains left.
			return probe.Estimate{Value: b, Low: math.Max(found-off, 0), AtLeast: true}
		}
		return within(b, off)
	}
	return probe.NoEstimate("no train emptied the bucket")
}

// policerSize returns the bucket size of a policer, from the first train that lost
// packets. The time that the packets took to arrive at the policer is between the time in
// which they were sent and the time in which they arrived at the receiver.
func (e *evidence) policerSize(rate, highRate float64) probe.Estimate {
	for i := range e.tails {
		t := &e.tails[i]
		if t.onset < minPiece {
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
			// The rate has only a bound, too: use its upper end for the lower bound.
			low := bytes - highRate*math.Max(v.sent[t.onset-1]-v.sent[0], v.at[last]-v.at[0])/8e9
			b := bucketSize(e.usages, v.at[0], rate, math.Max(sent, came))
			return probe.Estimate{Value: b, Low: math.Max(low-v.frame, 0), AtLeast: true}
		}
		high := bucketSize(e.usages, v.at[0], rate, math.Max(sent, came)) + v.frame
		low := math.Max(bucketSize(e.usages, v.at[0], rate, math.Max(math.Min(sent, came), 0))-v.frame, 0)
		return probe.Estimate{Value: (low + high) / 2, Low: low, High: high}
	}
	return probe.NoEstimate("bucket was empty before the first train")
}

// policedRate returns the rate of a policer, from trains that were paced to different
// rates.
func (e *evidence) policedRate(best *tail) probe.Estimate {
	var parts []part
	var fastest part
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
		passed := t.passed()
		one := part{math.Min(t.v.offered(), e.link), passed, passed * off}
		if parts = append(parts, one); one.p > fastest.p {
			fastest = one
		}
	}
	all, sd := totalRate(parts)
	off, high := z90*sd, math.Max(all, fastest.got*(1+maxOthers*fastest.got/fastest.p))
	lost := 1 - e.loss/2 // loss before or behind the policer
	off = math.Hypot(off, all*e.loss/2)
	low := math.Min(all, fastest.got)
	return probe.Estimate{Value: all / lost, Low: (low - off) / lost, High: (high + off) / lost}
}
