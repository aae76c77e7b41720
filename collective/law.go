package collective

import (
	"math"
	"time"

	"headgate/unit"
)

// Ours, of how much a set sends: chosen on the networks of seednet_test.go and rivals_test.go.
const (
	// stepLeast is the least time between two steps; a step takes a round trip if that is
	// longer.
	stepLeast = 50 * time.Millisecond
	// The budget of the queue is this part of the base round trip, between these bounds.
	budgetPart              = 0.4
	leastBudget, mostBudget = 3 * time.Millisecond, 20 * time.Millisecond
	// bendLeast is the least round trip by which the pace is bent: it takes a look of 10 ms,
	// and a round trip or two, to see what came of it.
	bendLeast = 40 * time.Millisecond
	// mostBend is how far the pace is bent down at most: a machine that stood still for
	// seconds is no queue.
	mostBend = 0.25
	// gain is by what part of the way to where the queue would be at its budget a step goes,
	// grow the most that one goes up.
	gain, grow = 0.4, 0.05
	// yield is the part of one connection's share that a loss costs: CUBIC's.
	yield = 0.3
	// warned is for how long a loss is news. Where more steps than fewLosses see one, it is
	// loss that shares the path out, however short the queue is.
	warned    = 3 * time.Second
	fewLosses = 0.25
	// ahead is how far a cap may be above what is attained, beyond how much farther it may
	// grow before that is seen.
	ahead, beyond = 1.25, 1.2
	// least is the part of what the set needs below which delay does not lower it: there may
	// be a queue that it cannot shorten. leastLost is the same for losses.
	least, leastLost = 0.08, 0.04
	// The queue is others' if it is less than others times its budget in less than rare of the
	// time, whatever the set does, and no longer if in more than often: in the mean over
	// rivalsFor. A set alone is at its budget, a little more or less.
	others      = 1.1
	rivalsFor   = 2000 * time.Millisecond
	rare, often = 0.02, 0.2
	// Whether it is really others' is tested every testEvery: by half as much for testFor, or
	// as many round trips as drain what one holds, and show it.
	testEvery, testFor = 20 * time.Second, 500 * time.Millisecond
	testRounds         = 6
	// standingFor is a time in which a burst passes: a queue that never does is standing.
	standingFor = 500 * time.Millisecond
	// While others leave a set less than little of what it needs, it sends at the mean of
	// evenFor: what it finds from one round trip to the next are others' bursts. That ends with
	// half as much again, a queue that is the set's own for freeFor, or no loss for lossless.
	little            = 0.15
	evenFor           = 6 * time.Second
	freeFor, lossless = time.Second, 10 * time.Second
	// modest is the part of that mean which is sent, where nobody else's connections share the path
	// out by their losses: what is sent evenly also meets the bursts that it had waited for.
	modest = 0.75
	// leastPace in bit/s, two segments in a quarter of a second, is the lowest that is set. A
	// connection that is told a hundredth of that waits for as long, whatever it is told next.
	leastPace = 2 * segment * 8 / 0.25
	// windowRounds is how many round trips of its pace a connection's window has room for,
	// leastWindow the least in packets.
	windowRounds, leastWindow = 2, 4
)

// law decides how much a set sends: scale times each connection's share, while the queue is
// at its budget. When the round trip is shorter or longer than that the pace is bent up or
// down with it, as a window would that is not in whole packets.
type law struct {
	scale float64
	// full is the scale at which all have what they need.
	full float64
	// allowed is the mean of the bent scale over the time in which rates are measured.
	allowed float64
	clock   time.Duration // time in steps
	lostAt  time.Duration // when something was lost last; 0 is never
	// within is the part of the last time in which the queue was the set's own, lossy
	// that in which something was lost.
	within, lossy float64
	// rivals: somebody else keeps the queue full, so that TCP's own way of finding a
	// share is the only one left.
	rivals bool
	// tested is when that was tested last, until when the test ends, and held the scale
	// before; 0 is no test.
	tested, until time.Duration
	held          float64
	standing      standing
	// even is the bent scale in the mean while others leave the set little, 0 else; crowded is
	// when the queue was last more than the set's own.
	even    float64
	crowded time.Duration
}

// standing is the shortest queue of a standingFor, that of the one before, and when this began.
type standing struct {
	now, before time.Duration
	since       time.Duration
}

func newLaw(full float64) law {
	return law{scale: ahead * full, allowed: ahead * full, full: full, within: 1}
}

// step brings the scale up to date.
func (l *law) step(s sight, took time.Duration) {
	if s.members == 0 {
		// All are idle, or so held back that they show nothing.
		l.scale = max(l.scale, min(l.scale*(1+grow), ahead*l.full))
		return
	}
	l.watch(s, took)
	floor, before := least*l.full, l.scale
	if l.held > 0 && l.clock > l.until {
		l.scale, l.held = l.held, 0
	}
	switch {
	case s.lost > 0 && l.held == 0:
		l.lostAt = l.clock
		of := float64(max(s.waiting, s.lost))
		l.scale *= 1 - yield*float64(s.lost)/of
		floor = leastLost * l.full
	case l.held > 0:
		if s.own() { // it was the set's
			l.rivals, l.within, l.held = false, 1, 0
		}
	case l.rivals && l.clock-l.tested > testEvery:
		l.tested, l.until, l.held = l.clock, l.clock+max(testRounds*s.rtt, testFor), l.scale
		l.scale /= 2
	case l.rivals:
		l.scale *= 1 + min(l.probing(s, took), 1)
	case s.bend < 1:
		l.scale *= 1 + gain*(s.bend-1)
	case l.lostAt > 0 && l.clock-l.lostAt < warned:
		l.scale *= 1 + min(l.probing(s, took), max(grow, min(2*(l.lossy-fewLosses), 1)))
	default:
		l.scale *= 1 + min(gain*(s.bend-1), grow)
	}
	if s.waiting > 0 && l.held == 0 {
		// Beyond what is attained a cap binds nobody: it grows no further, and comes back. What
		// waits now may have had nothing to send just before.
		most := ahead * max(s.attained, s.lasts) / s.shares
		l.scale = min(l.scale, max(before, beyond*most/s.bend)) * min(1, most/l.allowed)
	}
	l.scale = max(l.scale, floor)
	l.smooth(s, took)
}

// smooth keeps the mean that is sent at while others leave the set little.
func (l *law) smooth(s sight, took time.Duration) {
	most, quiet := little*l.full, warned
	if l.even > 0 {
		most, quiet = 1.5*most, lossless
	}
	lossy := l.lostAt > 0 && l.clock-l.lostAt < quiet && l.clock-l.crowded < freeFor
	if !lossy || l.allowed > most || l.held > 0 {
		l.even = 0
		return
	}
	now := l.scale * s.bend
	if !l.rivals {
		now *= modest
	}
	if l.even == 0 {
		l.even = now
	}
	l.even += part(took, evenFor) * (now - l.even)
}

// sends is the scale that is sent at, with the queue that is there.
func (l *law) sends(s sight) float64 {
	if l.even > 0 {
		return l.even
	}
	return l.scale * s.bend
}

// watch sees whether the queue stands, and whose it is.
func (l *law) watch(s sight, took time.Duration) {
	l.clock += took
	if !s.own() {
		l.crowded = l.clock
	}
	l.allowed += part(took, max(2*s.rtt, soon)) * (l.sends(s) - l.allowed)
	l.within += part(took, rivalsFor) * (one(s.own()) - l.within)
	l.lossy += part(took, rivalsFor) * (one(s.lost > 0) - l.lossy)
	if l.within < rare && !l.rivals {
		l.rivals, l.tested = true, l.clock-testEvery // at once, the first time
	} else if l.within > often {
		l.rivals, l.held = false, 0
	}
	if q := &l.standing; l.clock-q.since >= standingFor {
		*q = standing{now: s.queue, before: q.now, since: l.clock}
	} else {
		q.now = min(q.now, s.queue)
	}
}

// probing is by what part the set's connections would grow in congestion avoidance: by a
// segment a round trip each.
func (l *law) probing(s sight, took time.Duration) float64 {
	rounds := took.Seconds() / s.rtt.Seconds()
	return float64(s.waiting) * segment * 8 / s.rtt.Seconds() * rounds / max(s.attained, 1)
}

// cap is a connection's.
func (l *law) cap(m *member, s sight) Cap {
	rate := l.sends(s) * m.share() * m.due
	window := windowRounds * rate * (m.rtt + s.budget).Seconds() / 8
	return Cap{Rate: unit.Rate(max(rate, leastPace)), Window: unit.Bytes(max(window, leastWindow*segment))}
}

// part is what a new value weighs in a mean over so long, after so much time.
func part(took, over time.Duration) float64 { return 1 - math.Exp(-took.Seconds()/over.Seconds()) }

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
