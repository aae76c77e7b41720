package limiter

import (
	"math"

	"headgate.dev/headgate/probe"
)

// evidence is what the trains show of a path.
type evidence struct {
	trains []trainView // trains of full-size packets
	light  []trainView // trains of small packets at a low rate

	capacity float64 // capacity of the path in bit/s; 0 is unknown
	link     float64 // lower bound of the rate of its links, in bit/s
	loss     float64 // fraction of packets that the path loses of any train

	// Numbers of trains: overflow lost packets in the receiver's socket, stepped had a
	// clock that was set back, cut were not sent completely, and vanished did not arrive.
	overflow, stepped, cut, vanished int

	sender, receiver *sleepPattern
	small            *sleepPattern // silences in the arrivals of small packets
	shared           bool          // there is cross traffic
	usages           []usage
	ticking          ticking
	ticks            bool
	tails            []tail // the tails of the trains, in order
	longest          *tail  // the tail that shows most
}

func newEvidence(samples []probe.Sample, capacityKnown float64, full int) *evidence {
	trains, short := read(samples, full)
	e := &evidence{capacity: capacityKnown, link: capacityKnown * knownLink}
	e.sort(trains)
	e.loss = usualLoss(short, e.light)
	if e.capacity == 0 {
		e.capacity, e.link = capacity(short)
	}
	e.usages = usages(trains, short)
	e.shared = e.jitters()
	e.ends()
	e.curves()
	e.bursts()
	return e
}

// knownLink: a given capacity is accurate to 3 % (the target of the capacity method).
const knownLink = 0.97

// sort keeps the trains without faults, or all if there is none.
func (e *evidence) sort(trains []trainView) {
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
		case v.full:
			clean++
		}
	}
	for _, v := range trains {
		switch {
		case !v.full && v.asked > 0:
			e.light = append(e.light, v)
		case v.full && (clean == 0 || !v.overflow && !v.stepped):
			e.trains = append(e.trains, v)
		}
	}
}

// usualLoss returns the loss that any train has on the path: the smaller of the loss of
// short bursts and of small packets, because either may overflow a queue.
func usualLoss(kinds ...[]trainView) float64 {
	lowest := 1.0
	for _, views := range kinds {
		lost, count := 0.0, 0.0
		for i := range views {
			n := float64(len(views[i].sent))
			lost, count = lost+views[i].lost()*n, count+n
		}
		if count > 0 {
			lowest = math.Min(lowest, lost/count)
		}
	}
	if lowest == 1 {
		return 0
	}
	return lowest
}

// ends detects whether one of the ends is scheduled at intervals.
func (e *evidence) ends() {
	for _, views := range [][]trainView{e.light, e.trains} {
		for i := range views {
			v := &views[i]
			if s := v.senderSleeps(); s.scheduled() && better(&s, e.sender) {
				e.sender = &s
			}
			between := v.silences()
			if len(between) == 0 {
				continue
			}
			if s := v.receiverSleeps(between); s.scheduled() {
				e.assignReceiver(&s, between)
			}
		}
	}
	// If the silences of small packets match those of full-size packets in the number of
	// packets, they are from the receiver, even if it did not catch up.
	if e.receiver == nil && e.small != nil {
		for i := range e.trains {
			if s := e.trains[i].receiverSleeps(longer(e.trains[i].silences())); len(s.sleeping) > 1 && e.small.explains(&s) {
				e.receiver = e.small
			}
		}
	}
}

// assignReceiver checks whether the silences in the arrivals of a train are from the receiver.
func (e *evidence) assignReceiver(s *sleepPattern, between []silence) {
	v := s.v
	if !v.full && better(s, e.small) {
		e.small = s
	}
	late := v.asked > 0 && !v.full && v.catchesUp(between)
	clump := v.full && v.clumped(v.bursts(between)[1:])
	if e.receiver != nil && clump {
		e.receiver.clump = true
	}
	if (late || clump) && better(s, e.receiver) {
		s.clump = clump || e.receiver != nil && e.receiver.clump
		e.receiver = s
	}
}

// better reports whether s shows more than known. The silences of a sender are as exact
// as its packets are dense; those of a receiver are always exact, so that their number
// decides.
func better(s, known *sleepPattern) bool {
	switch more := known == nil || len(s.sleeping) > len(known.sleeping); {
	case known == nil || s.at == Receiver:
		return more
	default:
		return s.grain < known.grain/2 || more && s.grain < known.grain*2
	}
}

// bursts looks for (T, delta) in trains of full-size packets whose bursts are not from a
// suspended receiver.
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
		slept := v.receiverSleeps(between)
		if e.receiver != nil && e.receiver.explains(&slept) || v.clumped(bursts) || each < minBurst || silent < minSilent*took {
			continue
		}
		runs = append(runs, run{v, bursts})
	}
	if len(runs) > 0 {
		e.ticking, e.ticks = ticks(runs, e.loss, e.link)
	}
}

// longer removes silences that are much shorter than most, which are from a processor
// that stalled within a burst. The first is kept, since its length is arbitrary.
func longer(all []silence) (out []silence) {
	var lengths []float64
	for _, s := range all {
		lengths = append(lengths, s.length())
	}
	minLength := muchShorter * quantile(lengths, 0.75)
	for i, s := range all {
		if i == 0 || s.length() >= minLength {
			out = append(out, s)
		}
	}
	return out
}

const (
	// maxLink is the maximum rate of a head relative to the path's capacity. A faster
	// head was queued somewhere.
	maxLink     = 1.1
	muchShorter = 0.4
	// minBurst is the minimum average number of packets of an interval: single packets
	// are from a token bucket.
	minBurst = 1.5
	// minSilent is the minimum fraction of a train that is silent if silences limit it.
	minSilent = 0.12
)

// curves evaluates the tails of trains, and what their heads show of the link.
func (e *evidence) curves() {
	for i := range e.trains {
		if t, ok := newTail(&e.trains[i], e.loss); ok {
			e.tails = append(e.tails, t)
		}
	}
	limit := math.Inf(1)
	if e.capacity > 0 {
		limit = e.capacity * maxLink
	}
	for i := range e.tails {
		t := &e.tails[i]
		if t.head < math.Min(minFaster*t.v.offered(), full*8e9/clump) && (t.knee == 0 || t.headStands()) {
			e.link = math.Max(e.link, math.Min(t.head, limit))
		}
	}
	maxCount := 0
	for i := range e.tails {
		t := &e.tails[i]
		n := len(t.took.at) - t.knee
		switch {
		case t.v.asked > 0 && !t.limited():
			// A paced train without delay shows less than one with delay.
			n /= 8
		case e.shaped(t) && t.steady():
			// A train that ended at a shaper's rate shows more than one that was too
			// short.
			n = len(t.took.at)
		}
		if n >= maxCount {
			e.longest, maxCount = t, n
		}
	}
}
