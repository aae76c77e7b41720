package collective

import (
	"math"
	"time"

	"headgate.dev/headgate/unit"
)

// Constants of the sending rate of a set, chosen by Headgate on the networks of
// seednet_test.go and rivals_test.go.
const (
	// minStep is the minimum time between two steps; a longer round trip is the time
	// between steps.
	minStep = 50 * time.Millisecond
	// The queue budget is budgetPart of the base round trip, between these bounds.
	budgetPart           = 0.4
	minBudget, maxBudget = 3 * time.Millisecond, 20 * time.Millisecond
	// minBendRTT is the minimum round trip for bending the pace: the effect shows only
	// after a look of 10 ms and one or two round trips.
	minBendRTT = 40 * time.Millisecond
	// minBend is the lower bound of the bend: a machine that stalled for seconds is not
	// a queue.
	minBend = 0.25
	// gain is the fraction of the way to the queue budget that one step takes, grow the
	// maximum of one step upwards.
	gain, grow = 0.4, 0.05
	// lossBackoff is the fraction of a connection's share that one loss costs, as in CUBIC.
	lossBackoff = 0.3
	// lossMemory is how long a loss has an effect. If more than fewLosses of the steps see a
	// loss, losses divide the path, however short the queue is.
	lossMemory = 3 * time.Second
	fewLosses  = 0.25
	// capFactor is the factor by which a cap may exceed the attained rate, beyond the factor
	// by which it may grow before the effect shows.
	capFactor, growthFactor = 1.25, 1.2
	// minScale is the fraction of the learned rate below which delay does not lower the
	// set's rate: there may be a queue that the set cannot shorten. minScaleLoss is the same
	// for losses.
	minScale, minScaleLoss = 0.08, 0.04
	// The queue is that of rivals (cross traffic) if it is less than rivalQueueFactor times
	// its budget for less than the fraction rare of the time. It is no longer theirs if that
	// is true for more than the fraction often. Both are averages over rivalsFor. A set alone
	// keeps the queue near its budget.
	rivalQueueFactor = 1.1
	rivalsFor        = 2000 * time.Millisecond
	rare, often      = 0.02, 0.2
	// A test every testEvery checks whether the queue is really that of rivals: the set
	// halves its rate for testFor, or for the round trips that drain and show the queue.
	testEvery, testFor = 20 * time.Second, 500 * time.Millisecond
	testRounds         = 6
	// standingFor is the time in which a burst passes: a queue that remains for longer is
	// a standing queue.
	standingFor = 500 * time.Millisecond
	// While rivals leave a set less than starvedFraction of its learned rate, the set sends
	// at the mean over evenFor: variations between round trips are bursts of the rivals. That
	// ends at one and a half times starvedFraction, with a queue within the set's budget for
	// freeFor, or without loss for lossless.
	starvedFraction   = 0.15
	evenFor           = 6 * time.Second
	freeFor, lossless = time.Second, 10 * time.Second
	// starvedBackoff is the fraction of that mean that is sent if there are no rivals: evenly
	// sent packets also meet the bursts that would have delayed them.
	starvedBackoff = 0.75
	// minPace in bit/s is the minimum pace: two segments in a quarter of a second. A
	// connection with a hundredth of that pace would wait a hundred times as long,
	// whatever its next pace is.
	minPace = 2 * segment * 8 / 0.25
	// windowRounds is the number of round trips of its pace that the window of a
	// connection holds, minWindow the minimum in packets.
	windowRounds, minWindow = 2, 4
)

// scaleControl decides the rate of a set: scale times the share of each connection, while the
// queue is at its budget. With a shorter or longer round trip the pace is bent up or
// down, as a window with fractional packets would do.
type scaleControl struct {
	scale float64
	// full is the scale at which all connections have their learned rate.
	full float64
	// allowed is the mean of the bent scale over the time in which rates are measured.
	allowed float64
	clock   time.Duration // total time of all steps
	lostAt  time.Duration // time of the last loss; 0 is never
	// within is the fraction of recent time in which the queue was the set's own, lossy
	// the fraction with loss.
	within, lossy float64
	// rivals is set if cross traffic keeps the queue full, so that only TCP's own search
	// for a share remains.
	rivals bool
	// tested is the time of the last test, until the end of the current one, and held the
	// scale before the test; 0 is no test.
	tested, until time.Duration
	held          float64
	standing      standing
	// even is the mean of the bent scale while rivals starve the set, else 0.
	// crowded is when the queue last exceeded the set's own.
	even    float64
	crowded time.Duration
}

// standing is the shortest queue of the current and of the previous standingFor.
type standing struct {
	now, before time.Duration
	since       time.Duration
}

func newScaleControl(full float64) scaleControl {
	return scaleControl{scale: capFactor * full, allowed: capFactor * full, full: full, within: 1}
}

// step updates the scale.
func (l *scaleControl) step(s summary, took time.Duration) {
	if s.members == 0 {
		// All are idle, or so restricted that they show nothing.
		l.scale = max(l.scale, min(l.scale*(1+grow), capFactor*l.full))
		return
	}
	l.watch(s, took)
	floor, before := minScale*l.full, l.scale
	if l.held > 0 && l.clock > l.until {
		l.scale, l.held = l.held, 0
	}
	switch {
	case s.lost > 0 && l.held == 0:
		l.lostAt = l.clock
		of := float64(max(s.waiting, s.lost))
		l.scale *= 1 - lossBackoff*float64(s.lost)/of
		floor = minScaleLoss * l.full
	case l.held > 0:
		if s.own() { // the queue is the set's own
			l.rivals, l.within, l.held = false, 1, 0
		}
	case l.rivals && l.clock-l.tested > testEvery:
		l.tested, l.until, l.held = l.clock, l.clock+max(testRounds*s.rtt, testFor), l.scale
		l.scale /= 2
	case l.rivals:
		l.scale *= 1 + min(l.probing(s, took), 1)
	case s.bend < 1:
		l.scale *= 1 + gain*(s.bend-1)
	case l.lostAt > 0 && l.clock-l.lostAt < lossMemory:
		l.scale *= 1 + min(l.probing(s, took), max(grow, min(2*(l.lossy-fewLosses), 1)))
	default:
		l.scale *= 1 + min(gain*(s.bend-1), grow)
	}
	if s.waiting > 0 && l.held == 0 {
		// A cap beyond the attained rate has no effect: it stops growing, and comes back.
		// A connection with backlog may have been idle just before.
		limit := capFactor * max(s.attained, s.lasts) / s.shares
		l.scale = min(l.scale, max(before, growthFactor*limit/s.bend)) * min(1, limit/l.allowed)
	}
	l.scale = max(l.scale, floor)
	l.smooth(s, took)
}

// smooth updates the mean that is sent while rivals starve the set.
func (l *scaleControl) smooth(s summary, took time.Duration) {
	limit, quiet := starvedFraction*l.full, lossMemory
	if l.even > 0 {
		limit, quiet = 1.5*limit, lossless
	}
	lossy := l.lostAt > 0 && l.clock-l.lostAt < quiet && l.clock-l.crowded < freeFor
	if !lossy || l.allowed > limit || l.held > 0 {
		l.even = 0
		return
	}
	now := l.scale * s.bend
	if !l.rivals {
		now *= starvedBackoff
	}
	if l.even == 0 {
		l.even = now
	}
	l.even += part(took, evenFor) * (now - l.even)
}

// sends returns the scale for the current queue.
func (l *scaleControl) sends(s summary) float64 {
	if l.even > 0 {
		return l.even
	}
	return l.scale * s.bend
}

// watch detects a standing queue, and whether the queue is the set's own.
func (l *scaleControl) watch(s summary, took time.Duration) {
	l.clock += took
	if !s.own() {
		l.crowded = l.clock
	}
	l.allowed += part(took, max(2*s.rtt, shortAverage)) * (l.sends(s) - l.allowed)
	l.within += part(took, rivalsFor) * (one(s.own()) - l.within)
	l.lossy += part(took, rivalsFor) * (one(s.lost > 0) - l.lossy)
	if l.within < rare && !l.rivals {
		l.rivals, l.tested = true, l.clock-testEvery // test at once the first time
	} else if l.within > often {
		l.rivals, l.held = false, 0
	}
	if q := &l.standing; l.clock-q.since >= standingFor {
		*q = standing{now: s.queue, before: q.now, since: l.clock}
	} else {
		q.now = min(q.now, s.queue)
	}
}

// probing returns the relative growth of the set's connections in congestion avoidance:
// one segment per round trip each.
func (l *scaleControl) probing(s summary, took time.Duration) float64 {
	rounds := took.Seconds() / s.rtt.Seconds()
	return float64(s.waiting) * segment * 8 / s.rtt.Seconds() * rounds / max(s.attained, 1)
}

// cap returns the cap of a connection.
func (l *scaleControl) cap(m *member, s summary) Cap {
	rate := l.sends(s) * m.share() * m.due
	window := windowRounds * rate * (m.rtt + s.budget).Seconds() / 8
	return Cap{Rate: unit.Rate(max(rate, minPace)), Window: unit.Bytes(max(window, minWindow*segment))}
}

// part returns the weight of a new value after the time took in a mean over the time
// over.
func part(took, over time.Duration) float64 { return 1 - math.Exp(-took.Seconds()/over.Seconds()) }

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
