package limiter

import (
	"math"

	"headgate/probe"
)

// evidence is all that trains show of a path.
type evidence struct {
	trains []view // of full packets
	light  []view // of small ones at a low rate

	capacity float64 // of the path in bit/s; 0 is not known
	link     float64 // what its links carry at least
	loss     float64 // what it loses of any train

	// overflow, stepped, cut and vanished are how many trains lost packets in the receiver
	// itself, met a clock that was set back, were not sent to their end, or never came.
	overflow, stepped, cut, vanished int

	sender, receiver *sleeps
	small            *sleeps // silences of small packets' arrivals
	shared           bool    // others send, too
	spells           []spell
	ticking          ticking
	ticks            bool
	tails            []tail // of trains, in order
	longest          *tail  // the one that says most
}

func newEvidence(samples []probe.Sample, capacityKnown float64) *evidence {
	trains, short := read(samples)
	e := &evidence{capacity: capacityKnown, link: capacityKnown * knownLink}
	e.sort(trains)
	e.loss = usualLoss(short, e.light)
	if e.capacity == 0 {
		e.capacity, e.link = capacity(short)
	}
	e.spells = spells(trains, short)
	e.shared = e.jitters()
	e.ends()
	e.curves()
	e.bursts()
	return e
}

// knownLink: a capacity that is given is within 3 % (the target).
const knownLink = 0.97

// sort keeps the trains that are right, or all if none is.
func (e *evidence) sort(trains []view) {
	clean := 0
	for i := range trains {
		if trains[i].cut {
			e.cut++
		}
		if len(trains[i].at) == 0 {
			e.vanished++
		}
		switch v := &trains[i]; {
		case v.overflow:
			e.overflow++
		case v.stepped:
			e.stepped++
		case v.full():
			clean++
		}
	}
	for _, v := range trains {
		switch {
		case !v.full() && v.asked > 0:
			e.light = append(e.light, v)
		case v.full() && (clean == 0 || !v.overflow && !v.stepped):
			e.trains = append(e.trains, v)
		}
	}
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
			if s := v.suspended(between); s.scheduled() {
				e.taken(&s, between)
			}
		}
	}
	// Silences of small packets that are those of full ones, too, are counted in packets:
	// a receiver's, also if it did not catch up.
	if e.receiver == nil && e.small != nil {
		for i := range e.trains {
			if s := e.trains[i].suspended(longer(e.trains[i].silences())); len(s.sleeping) > 1 && e.small.explains(&s) {
				e.receiver = e.small
			}
		}
	}
}

// taken looks whether the silences of one train's arrivals are a receiver's.
func (e *evidence) taken(s *sleeps, between []silence) {
	v := s.v
	if !v.full() && better(s, e.small) {
		e.small = s
	}
	late := v.asked > 0 && !v.full() && v.catchesUp(between)
	clump := v.full() && v.clumped(v.bursts(between)[1:])
	if e.receiver != nil && clump {
		e.receiver.clump = true
	}
	if (late || clump) && better(s, e.receiver) {
		s.clump = clump || e.receiver != nil && e.receiver.clump
		e.receiver = s
	}
}

// better tells whether s shows more than what is known. A sender's silences are seen as
// exactly as its packets are dense, a receiver's always: there more of them count.
func better(s, known *sleeps) bool {
	switch more := known == nil || len(s.sleeping) > len(known.sleeping); {
	case known == nil || s.at == Receiver:
		return more
	default:
		return s.grain < known.grain/2 || more && s.grain < known.grain*2
	}
}

// bursts looks for (T, delta) among trains of full packets whose bursts no suspended
// receiver made.
func (e *evidence) bursts() {
	var runs []run
	for i := range e.trains {
		v := &e.trains[i]
		between := longer(v.silences())
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
		slept := v.suspended(between)
		if e.receiver != nil && e.receiver.explains(&slept) || v.clumped(bursts) || each < leastBurst || silent < leastSilent*took {
			continue
		}
		runs = append(runs, run{v, bursts})
	}
	if len(runs) > 0 {
		e.ticking, e.ticks = ticks(runs, e.loss, e.link)
	}
}

// longer are silences without those that are much shorter than most: a processor that
// stood still amid a burst. The first is as long as it happens to be.
func longer(all []silence) (out []silence) {
	var lengths []float64
	for _, s := range all {
		lengths = append(lengths, s.length())
	}
	least := muchShorter * quantile(lengths, 0.75)
	for i, s := range all {
		if i == 0 || s.length() >= least {
			out = append(out, s)
		}
	}
	return out
}

const (
	// mostLink is how much faster than the path's capacity a head may come: it is then
	// what waited somewhere.
	mostLink    = 1.1
	muchShorter = 0.4
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
	limit := math.Inf(1)
	if e.capacity > 0 {
		limit = e.capacity * mostLink
	}
	for i := range e.tails {
		t := &e.tails[i]
		if t.head < math.Min(leastFaster*t.v.offered(), full*8e9/clump) && (t.knee == 0 || t.headStands()) {
			e.link = math.Max(e.link, math.Min(t.head, limit))
		}
	}
	most := 0
	for i := range e.tails {
		t := &e.tails[i]
		n := len(t.took.at) - t.knee
		switch {
		case t.v.asked > 0 && !t.limited():
			// A train that was paced and not held up says less than one that was.
			n /= 8
		case e.shaped(t) && t.steady():
			// One that ended at a shaper's pace says more than one that was too short for that.
			n = len(t.took.at)
		}
		if n >= most {
			e.longest, most = t, n
		}
	}
}
