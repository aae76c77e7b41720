package path

import (
	"math"

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
	// grownOver is the part of a train's time between the middles of its first and last fifths.
	grownOver = 0.8
)

// bounds are what trains show of a path on which the capacity or the available bandwidth could not be estimated.
type bounds struct {
	// carried is the highest rate of a train, in bit/s, if its first packet was delayed by as much as a packet can be that does not queue, and its last was not.
	carried float64
	// passed is the highest rate of a train that made no queue, in bit/s, less what the variation of the delays may hide, and held are the bytes that passed.
	passed float64
	held   unit.Bytes
}

// bounds reads all trains. Without packets that were sent so slowly that they did not queue there are none. Trains above most, which the path does not carry for
// long, show nothing: they were shorter than a bucket.
func (r *evaluation) bounds(capacity *probe.Estimate, most float64) (b bounds) {
	varies, known := spread(r.samples)
	if !known {
		return b
	}
	for i := range r.samples {
		s := &r.samples[i]
		b.carried = math.Max(b.carried, carried(s, varies))
		if rate := r.passed(s, varies, capacity); rate > b.passed && rate <= most {
			b.passed, b.held = rate, arrived(s)
		}
	}
	return b
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

// passed returns the available bandwidth that the last part of a train shows at least, in bit/s: its rate, less that at which its queue may have grown without
// being seen. It is 0 if the queue was seen to grow, if packets were lost beyond passedLoss, or if the part was too short.
func (r *evaluation) passed(s *probe.Sample, spread float64, capacity *probe.Estimate) float64 {
	parts := s.Split()
	if len(parts) == 0 {
		return 0
	}
	p := parts[len(parts)-1]
	n := len(p.Arrived)
	rate := p.SendingRate()
	switch {
	case s.Purpose == limiter.PurposeLight: // small packets pass where full ones do not
		return 0
	case n < minHeld || rate <= 0 || p.ArrivalRate() < belowSent*rate || float64(s.Lost()) > (r.loss()+passedLoss)*float64(s.Count()):
		return 0
	}
	mean := func(of []probe.Arrival) (delay float64) {
		for _, a := range of {
			delay += float64(a.At-p.Sent[a.Number]) / float64(len(of))
		}
		return delay
	}
	grown := mean(p.Arrived[n-n/5:]) - mean(p.Arrived[:n/5])
	if grown > spread {
		return 0
	}
	ratio := float64(unknownRatio)
	if c := capacity; c != nil && c.Known() && !c.AtLeast {
		ratio = math.Max(c.High/rate, knownRatio)
	}
	took := grownOver * float64(p.Sent[len(p.Sent)-1]-p.Sent[0])
	return rate * math.Max(1-ratio*spread/took, 0)
}

// lacks reports whether there is no estimate for which trains may show a bound.
func (a *Answer) lacks() bool {
	return a.Capacity != nil && !a.Capacity.Known() || a.Available != nil && !a.Available.Available.Known()
}

// bound gives what is not known the bound that trains show. It comes last: the parts of an answer follow from each other's values, and not from these bounds.
func (a *Answer) bound(b bounds) {
	if c := a.Capacity; c != nil && !c.Known() && b.carried > 0 {
		*c = probe.Estimate{Value: b.carried, Low: b.carried, AtLeast: true, Because: c.Reason}
	}
	if v := a.Available; v != nil && !v.Available.Known() && b.passed > 0 {
		v.Available, v.Held = probe.Estimate{Value: b.passed, Low: b.passed, AtLeast: true, Because: v.Available.Reason}, b.held
	}
}
