package limiter

import (
	"fmt"
	"math"

	"headgate/probe"
	"headgate/unit"
)

// Constants, ours, from drawn paths (probe/sim, TestLimiter).
const (
	// leastArrivals are needed to say anything.
	leastArrivals = 2 * leastPiece
	// slower is how much slower than the link a shaper must be to be one; muchSlower,
	// if the train was paced, or faster than noisy: then a train lasts no longer than a
	// few hundred packets of cross traffic.
	slower, muchSlower = 0.88, 0.7
	noisy              = 2.5e9
	// leastFaster than it was sent no train comes.
	leastFaster = 1.1
	// agree: two trains that a shaper limits end at the same rate, also with others in
	// it (p90 of the error is 0.02 %).
	agree = 0.02
	// sharedTicks is by how much more there may be of delta, if others take a part.
	sharedTicks = 1.03
	// evenly is the part of gaps that are a shaper's, if nobody shares it.
	evenly = 0.6
	// slowest is what a sender that nothing limits sends at, at least: hosts leave at
	// some 10 Gbit/s (measured with UDP GSO).
	slowest = 5e9
	// longestPeriod of a schedule is some 150 ms (the seed's figure 4.5: 120 ms of sleep).
	longestPeriod = 150e6
	// surest is the highest confidence, and clear how far from a border in parts of it
	// an answer has it.
	surest, clear = 0.99, 0.08
)

// classify says what limits the path.
func (e *evidence) classify() Result {
	if len(e.trains) == 0 {
		return cannot("there is no train of full packets")
	}
	if e.longest == nil && !e.ticks {
		return cannot(fmt.Sprintf("fewer than %d packets of any train arrived", leastArrivals))
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
		r.Class, r.At, r.Confidence = Scheduling, s.At, surest-0.5/float64(s.Seen)
		r.RunnerUp, r.Why = None, fmt.Sprintf("nothing was sent or taken for %.2g ms, %d times", s.Sleeping.Value/1e6, s.Seen)
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
	for _, s := range []*sleeps{e.sender, e.receiver} {
		// Small packets may find no tokens in an interval that others used up.
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

// passesAtOnce tells whether a train of full packets came without a silence although
// it has more than one active period's: then it is not the receiver that sleeps, but
// something on the way that holds what comes while it does.
func (e *evidence) passesAtOnce(s *sleeps) bool {
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
	r.Confidence = surest * (1 - 0.5*(1-e.ticking.fit) - 1/math.Pow(2, float64(e.ticking.seen)))
	r.RunnerUp, r.Why = Scheduling, "the silences are in the arrivals alone, and what follows one is no faster than a link"
}

// policed is the train that shows a policer best, or nil. One that was sent at a rate
// says more than one back to back, whose packets wait for the link, too.
func (e *evidence) policed() (best *tail) {
	for i := range e.tails {
		t := &e.tails[i]
		switch {
		case t.policed():
			best = t
		case best != nil && t.onset < 0 && t.v.asked > 0 && t.v.offered() > best.after*leastFaster:
			best = nil
		}
	}
	return best
}

func (e *evidence) policer(r *Result, t *tail) {
	rate := e.policedRate(t)
	r.Class, r.At, r.Confidence = Policer, Path, surest
	if t.v.asked == 0 {
		r.Confidence = 0.8
	}
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: rate, Size: e.policerSize(rate.Value, rate.High)}
	r.RunnerUp, r.Why = TBF, "packets are lost as the head ends, and those that come have not waited"
}

// sure is how sure a rate is that lies beside a border.
func sure(rate, border float64) float64 {
	return 0.5 + (surest-0.5)*math.Min(math.Abs(rate/border-1)/clear, 1)
}

func (e *evidence) shaper(r *Result, t *tail) {
	rate := t.tokenRate()
	r.Class, r.At, r.Confidence = TBF, Path, sure(t.served(), e.border(t))
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: rate, Size: e.shaperSize(rate.Value)}
	r.RunnerUp, r.Why = None, fmt.Sprintf("the train came at %.0f Mbit/s in the end, and the link carries %.0f", rate.Value/1e6, e.link/1e6)
}

// follows is the longest train that was to go back to back, went slower, and came as
// it went; nil if most such trains did not.
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
	r.Class, r.At, r.Rate, r.Confidence = CPU, Sender, &estimate, sure(v.offered(), slowest)
	r.RunnerUp, r.Why = None, "packets came as they were sent, evenly, and slower than asked"
}

func (e *evidence) unlimited(r *Result, t *tail) {
	v := t.took
	n := len(v.at) - 1
	if t.onset >= 0 && !e.paced() && t.excess < shortQueue {
		*r = cannot(fmt.Sprintf("packets were lost from the %d. on, in a queue or a policer: a train that is paced would tell", t.onset+1))
		return
	}
	r.Class, r.Confidence = None, surest
	if t.limited() && e.link > 0 {
		r.Confidence = sure(t.served(), e.border(t))
	}
	r.Joint = &Joint{Rate: t.rate, Bytes: unit.Bytes(float64(n+1) * v.frame), Took: (v.at[n] - v.at[0]) / 1e9}
	r.RunnerUp, r.Why = TBF, "a bucket that no train emptied, or one that holds hardly a packet, looks the same"
	if looked := e.looked(); looked < longestPeriod {
		r.Confidence = math.Min(r.Confidence, 0.5+(surest-0.5)*looked/longestPeriod)
		r.RunnerUp, r.Why = Scheduling, fmt.Sprintf("all trains together lasted %.0f ms: an end that sleeps more seldom is not seen", looked/1e6)
	}
}

// paced tells whether any train was.
func (e *evidence) paced() bool {
	for i := range e.trains {
		if e.trains[i].asked > 0 {
			return true
		}
	}
	return false
}
