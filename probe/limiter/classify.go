package limiter

import (
	"fmt"
	"math"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants chosen by Headgate, from random paths (TestLimiter).
const (
	// minArrivals is the minimum number of arrivals for a result.
	minArrivals = 2 * minPiece
	// slower: a rate below this fraction of the link's is a shaper's. muchSlower is the
	// fraction for trains that were paced or that are faster than noisy, because such a
	// train lasts no longer than a few hundred packets of cross traffic.
	slower, muchSlower = 0.88, 0.7
	noisy              = 2.5e9
	// minFaster: a train never arrives faster than it was sent by this factor.
	minFaster = 1.1
	// agree: two trains that a shaper limits end at the same rate within this fraction,
	// even with cross traffic (p90 of the error is 0.02 %).
	agree = 0.02
	// sharedTicks is the factor for the upper end of delta if there is cross traffic.
	sharedTicks = 1.03
	// evenly is the fraction of the gaps that are a shaper's without cross traffic.
	evenly = 0.6
	// slowest is the minimum sending rate of a sender without a limiter: hosts send at
	// about 10 Gbit/s (measured with UDP GSO).
	slowest = 5e9
	// longestPeriod of a schedule is about 150 ms (the seed's figure 4.5: 120 ms of
	// sleep).
	longestPeriod = 150e6
	// maxConfidence is the highest confidence. clear is the relative distance from a border at
	// which a result has it.
	maxConfidence, clear = 0.99, 0.08
	// noneConfidence is the highest confidence that there is no limiter: a bucket that is larger than all trains gives the same result.
	noneConfidence = 0.85
)

// classify returns the limiter type of the path.
func (e *evidence) classify() Result {
	if len(e.trains) == 0 {
		return cannot("no train of full-size packets was sent")
	}
	if e.longest == nil && !e.ticks {
		return cannot(fmt.Sprintf("fewer than %d packets of any train arrived", minArrivals))
	}
	r := Result{Schedules: e.schedules()}
	if policed := e.policed(); e.ticks {
		e.xen(&r)
	} else if policed != nil {
		e.policer(&r, policed)
	} else if e.shaped(e.longest) {
		e.shaper(&r, e.longest)
	} else if len(r.Schedules) > 0 {
		s := r.Schedules[len(r.Schedules)-1]
		r.Class, r.At, r.Confidence = Scheduling, s.At, maxConfidence-0.5/float64(s.Seen)
		r.RunnerUp, r.Why = None, fmt.Sprintf("the end was inactive for %.2g ms, %d times", s.Sleeping.Value/1e6, s.Seen)
	} else if t := e.follows(); t != nil && !e.longest.limited() {
		e.processor(&r, t)
	} else {
		e.unlimited(&r, e.longest)
	}
	for _, doubt := range e.doubts(&r) {
		r.Doubts = append(r.Doubts, doubt)
		r.Confidence /= 2
	}
	return r
}

func (e *evidence) schedules() (out []Schedule) {
	line := 0.0
	for i := range e.trains {
		if v := &e.trains[i]; v.asked == 0 {
			line = math.Max(line, full*8e9/math.Max(usual(v.sent, 0), 1))
		}
	}
	for _, s := range []*sleepPattern{e.sender, e.receiver} {
		// Small packets may find no tokens in an interval whose tokens others have used.
		if s != nil && (!e.ticks || s.at == Sender || s.clump) {
			if s.at == Receiver && e.passesAtOnce(s) {
				out = append(out, s.schedule(Path, e.link))
			} else {
				out = append(out, s.schedule(s.at, line))
			}
		}
	}
	return out
}

// passesAtOnce reports whether a train of full-size packets arrived without a silence
// although it is longer than one active period. Then not the receiver sleeps, but
// something on the path holds packets.
func (e *evidence) passesAtOnce(s *sleepPattern) bool {
	for i := range e.trains {
		v := &e.trains[i]
		if len(s.packets) > 0 && float64(len(v.n)) > 2*median(s.packets) && len(longer(v.silences())) == 0 {
			return true
		}
	}
	return false
}

func (e *evidence) xen(r *Result) {
	r.Class, r.At, r.Ticks = Xen, Path, e.ticking.result()
	if e.shared {
		for _, estimate := range []*probe.Estimate{&r.Ticks.Packets, &r.Ticks.Tokens, &r.Ticks.Rate} {
			estimate.High *= sharedTicks
		}
	}
	r.Confidence = maxConfidence * (1 - 0.5*(1-e.ticking.fit) - 1/math.Pow(2, float64(e.ticking.seen)))
	r.RunnerUp, r.Why = Scheduling, "only the arrivals have gaps, and packets after a gap do not arrive faster than a link sends"
}

// policed returns the train that shows a policer best, or nil. A paced train shows more
// than one back to back, whose packets also queue for the link.
func (e *evidence) policed() (best *tail) {
	for i := range e.tails {
		t := &e.tails[i]
		switch {
		case t.policed():
			best = t
		case best != nil && t.onset < 0 && t.v.asked > 0 && t.v.offered() > best.after*minFaster:
			best = nil
		}
	}
	return best
}

func (e *evidence) policer(r *Result, t *tail) {
	rate := e.policedRate(t)
	r.Class, r.At, r.Confidence = Policer, Path, maxConfidence
	if t.v.asked == 0 {
		r.Confidence = 0.8
	}
	if t.excess > 0 { // the queue of a slow or short shaper drops as well
		r.Confidence *= 1 - math.Min(t.excess/shortQueue, 1)/2
	}
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: rate, Size: e.policerSize(rate.Value, rate.High)}
	r.RunnerUp, r.Why = TBF, "packets are lost after the head, and those that arrive were not queued"
}

// confidence returns the confidence for a rate near a border.
func confidence(rate, border float64) float64 {
	return 0.5 + (maxConfidence-0.5)*math.Min(math.Abs(rate/border-1)/clear, 1)
}

func (e *evidence) shaper(r *Result, t *tail) {
	rate := t.tokenRate()
	r.Class, r.At, r.Confidence = TBF, Path, confidence(t.served(), e.linkThreshold(t))
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: rate, Size: e.shaperSize(rate.Value)}
	r.RunnerUp, r.Why = None, fmt.Sprintf("the train arrived at %.0f Mbit/s at its end, and the link has %.0f", rate.Value/1e6, e.link/1e6)
}

// follows returns the longest train that should have been sent back to back, was sent
// slower, and arrived as it was sent. It returns nil unless at least half of such trains
// did.
func (e *evidence) follows() (t *tail) {
	all, some := 0, 0
	for i := range e.tails {
		o := &e.tails[i]
		if o.v.asked > 0 {
			continue
		}
		all++
		if o.onset <= 0 && o.v.offered() < slowest && o.took.stretch() < 1/follows {
			some++
			t = o
		}
	}
	if 2*some < all {
		return nil
	}
	return t
}

func (e *evidence) processor(r *Result, t *tail) {
	v := t.v
	each := gaps(v.sent)
	_, sd := spread(each)
	rate := v.frame * 8e9 / median(each)
	estimate := within(rate, rate*math.Hypot(clockPace, z90*math.Min(sd/median(each), 0.05)/math.Sqrt(float64(len(each)))))
	r.Class, r.At, r.Rate, r.Confidence = CPU, Sender, &estimate, confidence(v.offered(), slowest)
	r.RunnerUp, r.Why = None, "packets arrived as they were sent, evenly, and were sent slower than requested"
}

func (e *evidence) unlimited(r *Result, t *tail) {
	v := t.took
	n := len(v.at) - 1
	if t.onset >= 0 && !e.paced() && t.excess < shortQueue {
		*r = cannot(fmt.Sprintf("packets were lost from packet %d on, in a queue or a policer: send a paced train to distinguish them", t.onset+1))
		return
	}
	r.Class, r.Confidence = None, noneConfidence
	if t.limited() && e.link > 0 {
		r.Confidence = math.Min(r.Confidence, confidence(t.served(), e.linkThreshold(t)))
	}
	r.Joint = &Joint{Rate: t.rate, Bytes: unit.Bytes(float64(n+1) * v.frame), Took: (v.at[n] - v.at[0]) / 1e9}
	r.RunnerUp, r.Why = TBF, "a bucket that no train emptied, or one that holds hardly a packet, gives the same result"
	if looked := e.observedTime(); looked < longestPeriod {
		r.Confidence = math.Min(r.Confidence, 0.5+(maxConfidence-0.5)*looked/longestPeriod)
		r.RunnerUp, r.Why = Scheduling, fmt.Sprintf("all trains lasted %.0f ms in total: an end that sleeps less often is not detected", looked/1e6)
	}
}

// paced reports whether any train was paced.
func (e *evidence) paced() bool {
	for i := range e.trains {
		if e.trains[i].asked > 0 {
			return true
		}
	}
	return false
}
