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
	lossBackoff = 1 - cubicBackoff
	// lossMemory is how long a loss has an effect. If more than fewLosses of the steps see a
	// loss, losses divide the path, however short the queue is.
	lossMemory = 3 * time.Second
	fewLosses  = 0.25
	// capFactor is the factor by which a cap may exceed the attained rate, beyond the factor
	// by which it may grow before the effect shows.
	capFactor, growthFactor = 1.25, 1.2
	// minScale is the fraction of the learned rate below which delay does not lower the
	// set's rate: there may be a queue that the set cannot shorten.
	minScale = 0.08
	// taken: a set that gets less than this part of the most it got, beside a queue, has rivals. The most is forgotten over mostMemory. Beside rivals, a set that gets
	// nearMost of it may be alone again. That is tried: if the others come within trial, or trialRounds round trips, they were there, and the path gives
	// moreThan what the set had.
	taken, nearMost, moreThan = 0.9, 0.97, 1.1
	mostMemory                = 60 * time.Second
	trial, trialRounds        = time.Second, 6
	// shownRounds is the number of round trips until a queue shows in readings, and 1/shownError the error of what is expected of it.
	shownRounds, shownError = 2, 8
	// leastAlone is the part of that rate below which a set does not go to drain a queue.
	leastAlone = 0.75
	// The next trial is after minPatience, and after twice as long each time, up to maxPatience.
	minPatience, maxPatience = time.Second, 30 * time.Second
	// clockedPace is how much faster than its rate a connection is paced that its window limits, minFairWindow its least window in packets: with fewer a loss waits
	// for the timer.
	clockedPace   = 1.25
	minFairWindow = 2
	// Without a loss, and without a queue or with less than the part usedWindow of the windows in use, backlog is due to a limit of this host, which holds packets back before
	// they are sent. The latter is for configured weights only, because control of others does not begin for such a limit. There windows divide nothing, because a connection has no more than some packets in the host's queue, and connections are paced at heldPace times
	// what the set gets.
	heldPace   = 1.05
	usedWindow = 0.75
	// standingFor is the time in which a burst passes: a queue that remains for longer is
	// a standing queue.
	standingFor = 500 * time.Millisecond
	// minPace in bit/s is the minimum pace: two segments in a quarter of a second. A
	// connection with a hundredth of that pace would wait a hundred times as long,
	// whatever its next pace is.
	minPace = 2 * segment * 8 / 0.25
	// windowRounds is the number of round trips of its pace that the window of a
	// connection holds, minWindow the minimum in packets.
	windowRounds, minWindow = 1.25, 4
)

// scaleControl decides the rate of a set: scale times the share of each connection. Alone, the scale keeps the queue at its budget, and with a shorter or longer
// round trip the pace is bent up or down, as a window with fractional packets would do. Beside rivals the set sends what as many ordinary
// connections would.
type scaleControl struct {
	scale float64
	// full is the scale at which all connections have their learned rate.
	full float64
	// allowed is the mean of the scale that is sent over the time in which rates are measured.
	allowed float64
	clock   time.Duration // total time of all steps
	lostAt  time.Duration // time of the last loss; 0 is never
	// lossy is the fraction of recent time with loss.
	lossy float64
	fair  fairShare
	// rivals is set if others take what the set leaves.
	rivals bool
	// most is the most that the set has carried while there was a queue, in bit/s: alone, the rate of the path. had is what it carried before the last trial.
	most, had float64
	// tried is when it was last tried or found whether the set is alone, patience how long after that the next try is. expected is the queue that the set
	// alone would have, shown what of that readings show.
	tried, patience, expected, shown time.Duration
	queued                           time.Duration // since when there is a queue
	standing                         standing
	probe                            paceProbe
	// unheld is until when windows that are not used are no sign of a limit of this host: a probe has shown that they are not.
	unheld time.Duration
	// sign is when there was a loss or a queue the last time.
	sign time.Duration
}

// standing is the shortest queue of the current and of the previous standingFor.
type standing struct {
	now, before time.Duration
	since       time.Duration
}

func newScaleControl(full, needs float64) scaleControl {
	return scaleControl{scale: capFactor * full, allowed: capFactor * full, full: full, most: needs, rivals: true, patience: minPatience}
}

// step updates the scale.
func (l *scaleControl) step(s summary, took time.Duration) {
	if s.members == 0 {
		// All are idle, or so restricted that they show nothing.
		l.scale = max(l.scale, min(l.scale*(1+grow), capFactor*l.full))
		return
	}
	l.watch(s, took)
	if s.lost > 0 {
		l.lostAt = l.clock
	}
	if s.lost > 0 || s.queue >= s.budget/2 {
		l.sign = l.clock
	}
	if l.probe.step(l.clock, s, l.rivals && l.held(s)); l.probe.carried(s) && s.queue >= s.budget/2 {
		l.probe.done, l.unheld = false, l.clock+maxProbe
	}
	l.judge(s, took)
	before := l.scale
	switch {
	case l.rivals:
		l.scale = s.attained / s.shares
		return
	case s.lost > 0:
		of := float64(max(s.waiting, s.lost))
		l.scale *= 1 - lossBackoff*float64(s.lost)/of
	case s.bend < 1:
		l.scale *= 1 + gain*(s.bend-1)
	case l.lostAt > 0 && l.clock-l.lostAt < lossMemory:
		l.scale *= 1 + min(l.probing(s, took), max(grow, min(2*(l.lossy-fewLosses), 1)))
	default:
		l.scale *= 1 + min(gain*(s.bend-1), grow)
	}
	if s.waiting > 0 {
		// A cap beyond the attained rate has no effect: it stops growing, and comes back.
		// A connection with backlog may have been idle just before.
		limit := capFactor * max(s.attained, s.lasts) / s.shares
		l.scale = min(l.scale, max(before, growthFactor*limit/s.bend)) * min(1, limit/l.allowed)
	}
	l.scale = max(l.scale, minScale*l.full)
}

// judge finds whether others take what the set leaves. A set that is alone has all of the path while there is a queue, however little it sends, and the queue
// gets longer only by what the set sends beyond that.
func (l *scaleControl) judge(s summary, took time.Duration) {
	l.most *= 1 - part(took, mostMemory)
	if !l.rivals {
		l.expected += time.Duration(((l.allowed*s.shares+s.others())/l.most - 1) * float64(took))
	}
	slack := s.budget + l.shown/shownError
	l.expected = max(min(l.expected, s.queue+slack), 0)
	l.shown += time.Duration(part(took, shownRounds*s.rtt) * float64(l.expected-l.shown))
	if l.rivals && s.waiting == 0 && s.behind == 0 {
		l.tryAlone(s, capFactor*l.full)
	}
	if s.queue < s.budget/2 {
		l.queued = l.clock
		return
	}
	full := l.clock-l.queued >= max(2*s.rtt, shortAverage) // before, the rate was what was sent
	if full {
		l.most = max(l.most, s.carried)
	}
	switch {
	case !l.rivals && (s.queue > l.shown+slack && l.clock-l.tried > s.rtt || full && s.rate < taken*l.most):
		l.patience = minPatience
		if l.clock-l.tried < max(trial, trialRounds*s.rtt) {
			l.most = max(l.most, moreThan*l.had)
			l.patience = min(2*l.patience, maxPatience)
		}
		l.rivals, l.tried = true, l.clock
	case l.rivals && full && l.clock-l.tried > l.patience && s.queue > s.budget && min(s.carried, s.rate) >= nearMost*l.most:
		l.most = s.carried
		l.tryAlone(s, s.attained/s.shares)
	}
}

// tryAlone lets the delay law decide from a scale on.
func (l *scaleControl) tryAlone(s summary, scale float64) {
	l.rivals, l.tried, l.had = false, l.clock, s.carried
	l.scale, l.expected, l.shown = scale, s.queue, s.queue
}

// sends returns the scale for the current queue.
func (l *scaleControl) sends(s summary) float64 {
	if s.shares == 0 { // none counts
		return l.scale
	}
	if l.rivals && l.held(s) {
		pace := heldPace
		if l.probe.running {
			pace = probePace
		}
		return min(l.fair.rate(s.rtt), pace*s.attained) / s.shares
	}
	if l.rivals {
		return l.fair.rate(s.rtt) / s.shares
	}
	return max(l.scale*s.bend, (leastAlone*l.most-s.others())/s.shares)
}

// held reports whether a limit of this host holds the set back.
func (l *scaleControl) held(s summary) bool {
	if s.waiting == 0 || l.clock-l.lostAt <= lossMemory {
		return false
	}
	unused := s.weighed && l.clock >= l.unheld && s.attained < usedWindow*l.fair.rate(s.rtt)
	return s.queue < s.budget/2 || unused
}

// watch detects a standing queue.
func (l *scaleControl) watch(s summary, took time.Duration) {
	l.clock += took
	l.allowed += part(took, max(2*s.rtt, shortAverage)) * (l.sends(s) - l.allowed)
	l.lossy += part(took, lossMemory) * (one(s.lost > 0) - l.lossy)
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

// cap returns the cap of a connection. Beside rivals its window is the limit, as without control: it sends less as soon as it knows of a loss. With the pace as the limit
// four connections on 10 Mbit/s and 20 ms lost twice as many packets.
func (l *scaleControl) cap(m *member, s summary) Cap {
	rate := l.sends(s) * m.share() * m.due
	if !l.rivals || l.held(s) {
		window := windowRounds * rate * (m.rtt + s.budget).Seconds() / 8
		return Cap{Rate: unit.Rate(max(rate, minPace)), Window: unit.Bytes(max(window, minWindow*segment))}
	}
	flight, pace := rate*m.rtt.Seconds()/8, clockedPace*rate
	if flight < minFairWindow*segment { // its least window is more than its share, and is no limit
		pace = rate
	}
	return Cap{Rate: unit.Rate(max(pace, minPace)), Window: unit.Bytes(max(flight, minFairWindow*segment))}
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
