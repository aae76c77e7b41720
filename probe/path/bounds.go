package path

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/unit"
)

// Constants of bounds, which trains show where an estimate is not possible. Chosen by Headgate.
const (
	// unknownRatio is by how much the capacity may exceed the rate of a train where it is not known, and knownRatio where it is known: the tight link, whose queue
	// grows, may be faster than the narrow one.
	unknownRatio, knownRatio = 4, 2
	// leastSpread is the error of delays, in ns: that of two timestamps.
	leastSpread = 2000
	// passedLoss is the part of its packets that a train may lose beyond what the path loses of a train that does not queue.
	passedLoss = 0.01
	// lastingPart is the part of a train's packets after which its rate must go on. A train shows a bound of the token rate if it has nearlyLongest of the bytes of the
	// longest train.
	lastingPart, nearlyLongest = 0.8, 0.5
)

// bounds are what trains show of a path on which the capacity, the available bandwidth or the token rate could not be estimated.
type bounds struct {
	// carried is the highest rate of a train, in bit/s, if its first packet was delayed by as much as a packet can be that does not queue, and its last was not.
	carried float64
	// passed is the highest rate of a train in bit/s, less that at which its queue grew or may have grown without being seen, and held are the bytes that passed.
	passed float64
	held   unit.Bytes
	// lasted is the highest rate of a train that was long, in bit/s, and lastedFor the bytes for which it had that rate: the token rate is at least that, or the
	// bucket outlasts these bytes.
	lasted    float64
	lastedFor unit.Bytes
}

// bounds reads all trains. Without packets that were sent so slowly that they did not queue there are none. Trains above most, which the path does not carry for
// long, show nothing: they were shorter than a bucket.
func (r *evaluation) bounds(capacity *probe.Estimate, most float64) (b bounds) {
	varies, known := spread(r.samples)
	if !known {
		return b
	}
	all := slices.Concat(r.samples, r.passing)
	for i := range all {
		s := &all[i]
		b.carried = math.Max(b.carried, carried(s, varies))
		if rate, held := r.passed(s, capacity); rate > b.passed && rate <= most {
			b.passed, b.held = rate, held
		}
	}
	b.lasted, b.lastedFor = r.lasted(varies, most)
	return b
}

// lasted returns the highest rate of a long train in bit/s, most at most, and for how many bytes of layer 2 the train had it.
func (r *evaluation) lasted(spread, most float64) (rate float64, held unit.Bytes) {
	rates, bytes := make([]float64, len(r.samples)), make([]unit.Bytes, len(r.samples))
	longest := unit.Bytes(0)
	for i := range r.samples {
		rates[i], bytes[i] = lasting(&r.samples[i], spread)
		longest = max(longest, bytes[i])
	}
	for i := range rates {
		if at := math.Min(rates[i], most) * (1 - sameRate); float64(bytes[i]) >= nearlyLongest*float64(longest) && at > rate {
			rate, held = at, bytes[i]
		}
	}
	return rate, held
}

// arrived returns the layer 2 bytes of a train that arrived.
func arrived(s *probe.Sample) unit.Bytes {
	return s.Bytes() * unit.Bytes(s.Count()-s.Lost()) / unit.Bytes(max(s.Count(), 1))
}

// spread returns the difference of the longest and the shortest delay of packets that are sent so slowly that they do not queue, in ns.
func spread(samples []probe.Sample) (widest float64, known bool) {
	for i := range samples {
		if s := &samples[i]; s.Purpose == limiter.PurposeLight && len(s.Arrived) >= minLight {
			widest, known = math.Max(widest, queued(s)), true
		}
	}
	return math.Max(widest, leastSpread), known
}

// carried returns the rate at which a train surely arrived, in bit/s. It is 0 if the train was no longer than the spread.
func carried(s *probe.Sample, spread float64) float64 {
	n := s.Count() - s.Lost() // a packet that arrived twice counts once
	if n < minHeld/2 || len(s.Parts) != 1 {
		return 0
	}
	first, last := s.Arrived[0].At, s.Arrived[0].At
	for _, a := range s.Arrived {
		first, last = min(first, a.At), max(last, a.At)
	}
	took := float64(last - first)
	if took < spread {
		return 0
	}
	return float64((n-1)*s.Parts[0].Frame()) * 8e9 / (took + spread)
}

// lasting returns a rate and for how many bytes of layer 2 a train had it: that of the first lastingPart of its packets or that of the others, whichever is lower. A
// bucket that these bytes empty has at least this token rate, and one that the others empty outlasts them.
func lasting(s *probe.Sample, spread float64) (rate float64, held unit.Bytes) {
	if s.Purpose == limiter.PurposeLight || len(s.Parts) == 0 {
		return 0, 0
	}
	var at []float64
	seen := map[int]bool{}
	for _, a := range s.Arrived {
		if !seen[a.Number] {
			seen[a.Number] = true
			at = append(at, float64(a.At))
		}
	}
	if len(at) < minHeld {
		return 0, 0
	}
	slices.Sort(at)
	n, frame := int(lastingPart*float64(len(at))), float64(s.Parts[0].Frame())
	rateOf := func(from, to int) float64 { return float64(to-from) * frame * 8e9 / (at[to] - at[from] + spread) }
	return math.Min(rateOf(0, n-1), rateOf(n-1, len(at)-1)), unit.Bytes(float64(n) * frame)
}

// weigh holds "no limiter", which others' traffic may hide, against the rate of a long train.
func (a *Answer) weigh(b bounds) {
	l, c := a.Limiter, a.Capacity
	if l == nil || l.Class != limiter.None || l.Confidence <= hidden || l.Confidence >= unsure || c == nil || !c.Known() || b.lasted == 0 {
		return
	}
	l.Confidence = noneSlowed
	if b.lasted >= lastedWell*c.Low {
		l.Confidence = noneLasted
	}
}

// bound gives what is not known the bound that trains show. It comes last: the parts of an answer follow from each other's values, and not from these bounds.
func (a *Answer) bound(b bounds) {
	if c := a.Capacity; c != nil && !c.Known() && b.carried > 0 {
		*c = probe.Estimate{Value: b.carried, Low: b.carried, AtLeast: true, Because: c.Reason}
	}
	if r := a.TokenRate; r != nil && !r.Rate.Known() && b.lasted > 0 {
		r.Rate, r.Held = probe.Estimate{Value: b.lasted, Low: b.lasted, AtLeast: true, Because: r.Rate.Reason}, b.lastedFor
	}
	if v := a.Available; v != nil && !v.Available.Known() && b.passed > 0 {
		v.Available, v.Held = probe.Estimate{Value: b.passed, Low: b.passed, AtLeast: true, Because: v.Available.Reason}, b.held
	}
}
