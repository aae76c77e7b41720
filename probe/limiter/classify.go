package limiter

import (
	"fmt"
	"math"

	"headgate/probe"
	"headgate/unit"
)

// evidence is all that trains show of a path.
type evidence struct {
	trains []view // of full packets
	light  []view // of small ones at a low rate

	capacity float64 // of the path in bit/s; 0 is not known
	link     float64 // what its links carry at least
	loss     float64 // what it loses of any train

	sender, receiver *sleeps
	spells           []spell
	ticking          ticking
	ticks            bool
	tails            []tail // of trains, in order
	longest          *tail  // the one that says most
}

func newEvidence(samples []probe.Sample, capacityKnown float64) *evidence {
	trains, short := read(samples)
	e := &evidence{capacity: capacityKnown, link: capacityKnown * 0.97}
	for _, v := range trains {
		if v.full() {
			e.trains = append(e.trains, v)
		} else if v.asked > 0 {
			e.light = append(e.light, v)
		}
	}
	e.loss = usualLoss(short, e.light)
	if e.capacity == 0 {
		e.capacity, e.link = capacity(short)
	}
	e.spells = spells(trains, short)
	e.ends()
	e.curves()
	e.bursts()
	return e
}

// usualLoss is what the path loses of any train: the lesser of what it lost of short
// bursts and of small packets, because either may have been too much for a queue.
func usualLoss(kinds ...[]view) float64 {
	least := 1.0
	for _, views := range kinds {
		lost, count := 0.0, 0.0
		for i := range views {
			n := float64(len(views[i].sent))
			lost, count = lost+views[i].lost()*n, count+n
		}
		if count > 0 {
			least = math.Min(least, lost/count)
		}
	}
	if least == 1 {
		return 0
	}
	return least
}

// ends looks whether one of the path's ends is scheduled now and then.
func (e *evidence) ends() {
	for _, views := range [][]view{e.light, e.trains} {
		for i := range views {
			v := &views[i]
			if s := v.asleep(); s.scheduled() && better(&s, e.sender) {
				e.sender = &s
			}
			between := v.silences()
			if len(between) == 0 {
				continue
			}
			s := v.suspended(between)
			if !s.scheduled() || !better(&s, e.receiver) {
				continue
			}
			late := v.asked > 0 && !v.full() && v.catchesUp(between)
			clump := v.full() && v.clumped(v.bursts(between)[1:])
			if s.clump = clump; late || clump {
				e.receiver = &s
			}
		}
	}
}

// better tells whether s shows more than what is known: finer, of enough periods.
func better(s, known *sleeps) bool {
	return known == nil || s.grain < known.grain/2 || s.grain < known.grain*2 && len(s.sleeping) > len(known.sleeping)
}

// bursts looks for (T, delta) among trains of full packets whose bursts no suspended
// receiver made.
func (e *evidence) bursts() {
	var runs []run
	for i := range e.trains {
		v := &e.trains[i]
		between := v.silences()
		if len(between) < 2 {
			continue
		}
		bursts := v.bursts(between)[1:]
		silent := 0.0
		for _, s := range between {
			silent += s.length()
		}
		took := v.at[len(v.at)-1] - v.at[bursts[0].from]
		each := float64(len(v.at)-bursts[0].from) / float64(len(bursts))
		if e.receiver != nil && e.receiver.explains(between) || v.clumped(bursts) || each < leastBurst || silent < leastSilent*took {
			continue
		}
		runs = append(runs, run{v, bursts})
	}
	if len(runs) > 0 {
		e.ticking, e.ticks = ticks(runs, e.loss, e.link)
	}
}

const (
	// leastBurst packets pass in an interval on average: one at a time is a token
	// bucket.
	leastBurst = 1.5
	// leastSilent is the part of a train that is silent, if that is what limits it.
	leastSilent = 0.12
)

// curves reads how trains end, and what their heads show of the link.
func (e *evidence) curves() {
	for i := range e.trains {
		if t, ok := newTail(&e.trains[i], e.loss); ok {
			e.tails = append(e.tails, t)
		}
	}
	most := 0
	for i := range e.tails {
		t := &e.tails[i]
		if t.head < leastFaster*t.v.offered() && (t.knee == 0 || t.headStands()) {
			e.link = math.Max(e.link, t.head)
		}
		// A train that was paced and not held up says less than one that was.
		n := len(t.took.at) - t.knee
		if t.v.asked > 0 && !t.limited() {
			n /= 8
		}
		if n >= most {
			e.longest, most = t, n
		}
	}
}

// leastArrivals are needed to say anything.
const leastArrivals = 2 * leastPiece

// classify says what limits the path.
func (e *evidence) classify() Result {
	if len(e.trains) == 0 {
		return cannot("there is no train of full packets")
	}
	r := Result{}
	line := 0.0
	for i := range e.trains {
		if v := &e.trains[i]; v.asked == 0 {
			line = math.Max(line, full*8e9/math.Max(usual(v.sent, 0), 1))
		}
	}
	for _, s := range []*sleeps{e.sender, e.receiver} {
		// Small packets may find no tokens in an interval that others used up.
		if s != nil && (!e.ticks || s.at == Sender || s.clump) {
			r.Schedules = append(r.Schedules, s.schedule(line))
		}
	}
	switch {
	case e.ticks:
		r.Class, r.At, r.Ticks = Xen, Path, e.ticking.result()
		r.Confidence = 0.5 + 0.5*e.ticking.fit*math.Min(float64(e.ticking.seen)/8, 1)*0.98
		r.RunnerUp, r.Why = Scheduling, "the silences are in the arrivals alone, and what comes after them comes no faster than the link"
		return r
	case e.longest == nil:
		r := cannot(fmt.Sprintf("fewer than %d packets of any train arrived", leastArrivals))
		return r
	}
	if t := e.policed(); t != nil {
		e.policer(&r, t)
		return r
	}
	t := e.longest
	switch {
	case e.shaped(t):
		e.shaper(&r, t)
	case len(r.Schedules) > 0:
		s := r.Schedules[len(r.Schedules)-1]
		r.Class, r.At, r.Confidence = Scheduling, s.At, 1-0.5/float64(s.Seen)
		r.RunnerUp, r.Why = None, "the silences come again and again"
	case e.follows(t):
		rate := within(t.v.offered(), t.v.offered()*0.01)
		r.Class, r.At, r.Rate, r.Confidence = CPU, Sender, &rate, 0.9
		r.RunnerUp, r.Why = TBF, "packets were sent no faster than they came"
	default:
		e.unlimited(&r, t)
	}
	return r
}

// policed is the train that shows a policer best, or nil. One that was sent at a rate
// says more than one back to back, whose packets wait for the link, too.
func (e *evidence) policed() (best *tail) {
	for i := range e.tails {
		t := &e.tails[i]
		switch {
		case t.policed():
			best = t
		case best != nil && t.onset < 0 && t.v.asked > 0 && t.v.offered() > best.after*1.1:
			best = nil
		}
	}
	return best
}

const (
	// slower is how much slower than the link a shaper must be to be one; muchSlower,
	// if the train was paced, or faster than noisy: then a train lasts no longer than a
	// few hundred packets of cross traffic.
	slower, muchSlower = 0.88, 0.75
	noisy              = 4e9
	// leastFaster than it was sent no train comes.
	leastFaster = 1.1
)

// shaped tells whether a train ended slower than the path's link, and at a rate of
// its own.
func (e *evidence) shaped(t *tail) bool {
	if t.v.asked > 0 || t.served() > noisy {
		// The slower a train, the larger the part of a link that others take.
		return t.limited() && t.served() < muchSlower*e.link
	}
	return t.limited() && t.served() < slower*e.link
}

// follows tells whether a train that was to go back to back went slower, and came as
// it went.
func (e *evidence) follows(t *tail) bool {
	v := t.v
	return v.asked == 0 && t.onset < 0 && v.offered() < slowest && t.took.stretch() < 1/follows
}

// slowest is what a sender that nothing limits sends at, at least.
const slowest = 5e9

func (e *evidence) policer(r *Result, t *tail) {
	rate := e.policedRate(t)
	r.Class, r.At = Policer, Path
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: rate, Size: e.policerSize(rate.Value)}
	r.Confidence = 0.95
	r.RunnerUp, r.Why = TBF, "packets are lost as the head ends, and those that come have not waited"
}

// policedRate is a policer's: what came of each train that was paced to another rate.
func (e *evidence) policedRate(best *tail) probe.Estimate {
	var parts []part
	most := 0.0
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
		parts = append(parts, part{t.v.offered(), t.after, t.after * off})
		most = math.Max(most, t.after)
	}
	all, sd := everything(parts)
	off := math.Hypot(z90*sd, math.Max(all-most, 0)/4)
	lost := 1 - e.loss/2 // before the policer, or behind it
	return within(all/lost, math.Hypot(off, all*e.loss/2))
}

func (e *evidence) shaper(r *Result, t *tail) {
	rate := t.rate
	off := rate * 0.02
	if t.exact {
		rate = t.v.frame * 8e9 / t.q.gap
		off = rate * t.q.off / t.q.gap
	}
	r.Class, r.At = TBF, Path
	r.Bucket = &Bucket{Peak: within(e.link, 0.05*e.link), Rate: within(rate, off), Size: e.shaperSize(rate)}
	r.Confidence = 0.95
	r.RunnerUp, r.Why = None, fmt.Sprintf("the train came at %.0f Mbit/s, and the link carries %.0f", rate/1e6, e.link/1e6)
}

func (e *evidence) unlimited(r *Result, t *tail) {
	v := t.v
	last := len(v.at) - 1
	r.Class, r.Confidence = None, 0.9
	r.Joint = &Joint{Rate: t.rate, Bytes: unit.Bytes(float64(last+1) * v.frame), Took: (v.at[last] - v.at[0]) / 1e9}
	r.RunnerUp, r.Why = TBF, "a bucket that no train emptied, or one that holds hardly a packet, looks the same"
}
