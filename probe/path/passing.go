package path

import (
	"math"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/unit"
)

// purposePass is that of trains which search the highest rate at which packets pass without a queue that grows. They are sent where the method of holding the tight
// link busy does not work: the capacity is not known, a limiter drops what it does not pass, or delays vary.
const purposePass = "pass/train"

// Constants of these trains, chosen by Headgate.
const (
	// firstPass is the rate of the first train, relative to that at which a long train arrived: with others' traffic on the tight link a train has more than what
	// they leave. passDown and passUp are the steps after a train that did not pass and after one that did.
	firstPass, passDown, passUp = 0.7, 0.5, 1.6
	// passes: a train passed if its bound is this part of its rate. passEnough is the ratio of a rate that passed and one that did not from which on no train follows.
	passes, passEnough = 0.6, 1.35
	// mostPass is how many trains search at most, and mostSlowPass on a slow link.
	mostPass, mostSlowPass = 5, 3
	// passPackets is how many packets a train has at least. It lasts passTime s if the bytes allow that. With full packets that last more than passLong s its packets
	// are smaller, and with the smallest it lasts longestPass s at most.
	passPackets                     = minHeld + 20
	passTime, passLong, longestPass = 0.05, 0.1, 0.3
	// keptPart is the part of the budget that these trains may have at most: a tenth.
	keptPart = 10
	// mostLoss is the most that a path loses without a limiter, and muchLoss that of a train that shows one, of which fewKept packets arrived at least.
	mostLoss, muchLoss, fewKept = 0.05, 0.2, 5
	// growthBlocks is the number of blocks of packets whose mean delays show how the queue grows, and growthErrors how many standard errors more may have been hidden.
	growthBlocks, growthErrors = 16, 2.5
)

// nextPass returns the next train of the search.
func (r *evaluation) nextPass(samples []probe.Sample) (t probe.Train, ok bool) {
	if !r.Available || !r.ours() {
		return t, false
	}
	sent := r.passing
	if len(sent) >= mostPass || r.slow() && len(sent) >= mostSlowPass || len(sent) == 0 && !r.lacksAvailable(samples) {
		return t, false
	}
	passed, failed := 0., math.Inf(1)
	for i := range sent {
		rate := float64(sent[i].Parts[0].Rate)
		if bound, _ := r.passed(&sent[i], nil); bound >= passes*rate {
			passed = math.Max(passed, rate)
		} else {
			failed = math.Min(failed, rate)
		}
	}
	var rate float64
	switch {
	case len(sent) == 0:
		varies, known := spread(r.samples)
		if !known {
			return t, false
		}
		lasted, _ := r.lasted(varies, math.Inf(1))
		rate = firstPass * math.Min(lasted, r.keptRate())
	case failed/math.Max(passed, 1) <= passEnough:
		return t, false
	case passed == 0:
		rate = passDown * failed
	case math.IsInf(failed, 1):
		rate = passUp * passed
	default:
		rate = math.Sqrt(passed * failed)
	}
	if c := r.claim(); isRate(c.Result) && c.confirmed {
		rate = math.Min(rate, c.Rate.Value)
	}
	if rate <= passed {
		return t, false
	}
	size := min(r.packet(), max(int(rate*passLong/8/passPackets)-probe.Overhead, leastSize))
	frame := float64(size + probe.Overhead)
	count := int(math.Min(rate*passTime/8, float64(r.shares().pass)/mostPass) / frame)
	t = probe.Uniform(purposePass, max(count, passPackets), size, unit.Rate(rate))
	return t, float64(t.Bytes())*8/rate <= longestPass
}

// keptRate returns the least rate at which packets passed of a train that lost much: a limiter drops what is faster.
func (r *evaluation) keptRate() float64 {
	least := math.Inf(1)
	for i := range r.samples {
		s := &r.samples[i]
		parts := s.Split()
		if len(parts) == 0 || s.Purpose == limiter.PurposeLight || float64(s.Lost()) < muchLoss*float64(s.Count()) {
			continue
		}
		p := parts[len(parts)-1]
		if p.Count() < slowHeld || len(p.Arrived) < fewKept {
			continue
		}
		if rate := p.SendingRate(); rate > 0 {
			least = math.Min(least, rate*float64(p.Count()-p.Lost())/float64(p.Count()))
		}
	}
	return least
}

// lacksAvailable reports whether there is no estimate of the available bandwidth.
func (m Method) lacksAvailable(samples []probe.Sample) bool {
	v := m.Estimate(samples).Available
	return v == nil || !v.Available.Known() || v.Available.Carried()
}

// passed returns the available bandwidth that the last part of a train shows at least, in bit/s: its rate, less that at which its queue may have grown without
// being seen, and the bytes that passed. It is 0 if packets were lost beyond passedLoss, or if the part was too short.
func (r *evaluation) passed(s *probe.Sample, capacity *probe.Estimate) (bound float64, held unit.Bytes) {
	parts := s.Split()
	if len(parts) == 0 || s.Purpose == limiter.PurposeLight { // small packets pass where full ones do not
		return 0, 0
	}
	p := parts[len(parts)-1]
	rate, lost, usual := p.SendingRate(), float64(s.Lost())/float64(s.Count()), math.Min(r.loss(), mostLoss)
	if len(p.Arrived) < minHeld || rate <= 0 || lost > usual+passedLoss+math.Sqrt(usual/float64(s.Count())) {
		return 0, 0
	}
	ratio := float64(unknownRatio)
	if c := capacity; c != nil && c.Known() && !c.AtLeast {
		ratio = math.Max(c.High/rate, knownRatio)
	}
	return rate * math.Max(1-ratio*(growth(&p)+math.Max(lost-usual, 0)), 0), unit.Bytes(lastingPart * float64(arrived(&p))) // the last packets do not show whether a bucket is empty
}

// growth returns how fast the delay of the packets of a train may have grown, in ns per ns that it was sent: a line through the means of blocks of packets, and
// growthErrors standard errors.
func growth(p *probe.Sample) float64 {
	n := len(p.Arrived)
	var at, delay [growthBlocks]float64
	middle, mean := 0., 0.
	for i := range at {
		block := p.Arrived[i*n/growthBlocks : (i+1)*n/growthBlocks]
		for _, a := range block {
			at[i] += float64(p.Sent[a.Number]-p.Sent[0]) / float64(len(block))
			delay[i] += float64(a.At-p.Sent[a.Number]-p.Arrived[0].At+p.Sent[0]) / float64(len(block))
		}
		middle, mean = middle+at[i]/growthBlocks, mean+delay[i]/growthBlocks
	}
	var sxx, sxy, residual float64
	for i := range at {
		sxx, sxy = sxx+(at[i]-middle)*(at[i]-middle), sxy+(at[i]-middle)*(delay[i]-mean)
	}
	slope := sxy / sxx
	for i := range at {
		off := delay[i] - mean - slope*(at[i]-middle)
		residual += off * off / (growthBlocks - 2)
	}
	// A fall shows that the packets were held back and then came at once.
	took := math.Max(float64(p.Sent[len(p.Sent)-1]-p.Sent[0]), 1)
	return math.Abs(slope) + growthErrors*math.Sqrt(residual/sxx) + stampTime/took
}
