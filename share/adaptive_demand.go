package share

import "math"

// Constants of demand, ours; rates are relative to the level.
const (
	// A flow that offers less than 1/8 of its floor sleeps, and wakes at 1/4. Keepalives of a
	// few packets a second therefore take no reservation back.
	sleepsBelow, wakesAbove = 1. / 8, 1. / 4
	// A flow is at its limit between these parts of it. TCP behind a meter offers the limit and
	// its retransmissions, or up to a tenth less; above, the flow does not react to drops, and
	// the offered rate is the demand.
	atLimitFrom, atLimitTo = 0.85, 1.05
	// A flow that offers more in this many successive cycles is unresponsive.
	unresponsive = 4
	// A flow at its limit is probed with headroom for probeCycles: leastProbe, or probeNoise
	// standard deviations. If the flow does not take half of it, which noise does once in 60
	// probes, the next probe follows after firstProbe cycles, then twice as many, up to lastProbe.
	leastProbe, probeNoise             = 0.03, 3
	probeCycles, firstProbe, lastProbe = 2, 8, 64
	// A flow that takes the headroom gets twice as much, up to lastHeadroom.
	lastHeadroom = 1
	// A rise in growing successive cycles counts as growth below the limit. Falls in as many,
	// each within calmCycles of the former, and each to little less than the limit, show that the
	// flow follows its limit. A step of the rate within a cycle appears as two.
	growing, calmCycles = 3, 6
	// A flow that reacts to drops and has had none for losslessCycles wants no more than it offers: what varies is in the bucket of its meter, or in the queue of its
	// host. With a margin for its noise, which steps of the rate make two to three times what it is, four TCP flows at 5 Mbit/s had up to 5 % more than they offered, and
	// all flows together 97.7 and 97.6 % of what they could have; without it 98.6 and 98.1 (bench reservations, 50 % controlled and 40 % random).
	losslessCycles = 4
	// lossyMargin is the most that is added for the noise of such a flow which did have drops: the bucket of its meter holds half a second of its rate. In the first
	// seconds of TCP connections, which catch up with what they could not send, the noise is 10 to 30 %: four reservations then had up to 40 % more than they
	// used for ten seconds, beside best effort that was limited to a quarter of what was left.
	lossyMargin = 0.05
	// A flow that rises to this many times a limit below its reservation has the whole reservation in the next cycle. Unless it is unresponsive that is so also
	// if what it offers after the rise was measured: TCP may want more than it sends under the limit.
	leapsOver = 1.2
	// wholeCycles is how long a reservation remains whole after a cycle in which it was used in
	// full. wholeNoise is how many standard deviations below it a level may be.
	wholeCycles, wholeNoise = 512, 3
	// A flow follows its limit if it is seized followingCuts times without a rise, and its level is at least leastAttained
	// of the limit. With 3 times, 5 % of noise alone does that once in an hour. Flows with less than quietNoise show it by
	// successive falls (growing), and above loudNoise each real fall would look so: at 0.1 TestFall would see 82 % instead of 84 %.
	followingCuts, leastAttained = 4, 0.7
	quietNoise, loudNoise        = 0.02, 0.06
	// leastChange is the least change of a claim without a change of the trend, and leastRise that of a rise to no more than the reservation: a constant flow
	// whose first measurement was 0.3 % too low lost 0.3 % of what is reserved to it for as long as it was constant.
	leastChange, leastRise = 0.005, 0.0005
	// falseCycles is the time in which bandwidth that was seized and returned counts as a false
	// seizure (reservations, section 3.3: "within the next few cycles").
	falseCycles = 3
	// A rate that rises above returnsTo of what was seized in part has changed, so that the seizure was right. Without that a few per cent that were
	// taken just before a rise delayed the seizures after it by 6 to 14 cycles.
	returnsTo = 1.05
	// Two false seizures within forgiveCycles delay the next ones, up to mostPatience;
	// forgiveCycles without one halve the delay. Those of less than grave of the claim do not count: senders that pause for some milliseconds caused some of 3 %,
	// and the delay of the true ones after them cost all flows of table 4.2 0.3 % of what they could have.
	mostPatience, forgiveCycles = 32, 128
	grave                       = 0.08
)

// demand is the state of one flow: the claim that follows from its offered rates.
//
// The claim is the level of the offered rate with a margin for noise. It changes only where the
// trend changes, so noise changes no limit. Headroom is added where the flow grows, and for
// short probes where it is at its limit.
type demand struct {
	trend
	// unresponsive: what it offers is what it wants. It is not probed, has headroom only while it rises on and on, and has the whole reservation only until it was
	// measured for a cycle. What it used before says nothing.
	unresponsive bool
	// wants is the least that the flow is known to want in this cycle, 0 if nothing is known. What it offers beside that is no sample of another rate: it
	// would count as noise, and the fall after it as a seizure.
	wants    float64
	metered  bool // it is known whether it lost packets at its limit
	lossless int  // cycles since it did
	claim    float64
	headroom float64
	probing  int     // cycles that headroom remains
	base     float64 // the level before the probe
	taken    float64 // the mean offered rate of the probe
	wait     int     // cycles until the next probe
	backoff  int
	attains  float64 // part of its limit that the flow attains, 0 if it does not follow its limit
	above    int     // successive cycles above the limit
	rises    int     // successive cycles with a rise
	falls    int     // successive falls near the limit
	steady   int     // cycles since the latest change
	waking   bool    // the reservation is returned until the probe ends
	whole    int     // cycles that the reservation remains whole
	cuts     int     // successive seizures, each within trendMemory cycles of the former
	apart    int     // cycles since the latest of them
	follows  float64 // part of its limit that a flow attains that was seen to follow it, 0 if none; ends with whole

	over     int     // cycles in which the target was below the claim
	former   float64 // the claim before the latest seizure
	age      int     // cycles since then
	patience int     // cycles by which a seizure is delayed
	calm     int     // cycles since the latest false seizure that was grave
	mistakes int     // false seizures
}

// next returns the claim for the next cycle. end is what was offered in the last part of the cycle, limit the limit of the cycle that has
// ended, floor the least claim. For best effort, reserved is 0.
func (d *demand) next(offered, end, limit, reserved, floor float64) float64 {
	d.age++
	d.apart++
	if d.calm++; d.calm%forgiveCycles == 0 {
		d.patience /= 2
	}
	if reserved > 0 && offered >= reserved && !d.unresponsive {
		d.whole = wholeCycles
	}
	switch {
	case offered < sleepsBelow*floor, d.samples == 0 && offered < wakesAbove*floor:
		d.forget()
		d.whole = 0
		d.settle(floor, reserved, true)
	case d.samples == 0:
		d.observe(max(offered, end))
		d.waking, d.headroom, d.above = true, 0, 0
		if reserved == 0 {
			d.headroom = lastHeadroom
		}
		d.grow(0)
		d.settle(d.target(reserved, floor), reserved, true)
	case d.hidden(offered, limit):
		d.learnNoise(offered)
		d.claim = max(d.claim, min(offered, reserved))
	default:
		changed, measured := d.observeStep(offered, end)
		moved := d.probe(changed, measured, offered, limit, reserved)
		returned := d.whole == wholeCycles && d.claim < reserved
		d.settle(d.target(reserved, floor), reserved, moved || returned)
	}
	return d.claim
}

// hidden reports whether the limit hides the demand: what a flow offers under a lower limit than
// its claim is no reason to lower the claim, unless the flow is unresponsive.
func (d *demand) hidden(offered, limit float64) bool {
	if offered > atLimitTo*limit {
		d.above++
	} else if d.above < unresponsive {
		d.above = 0
	}
	return !d.unresponsive && limit < 0.99*d.claim && d.above < unresponsive && d.atLimit(offered, limit)
}

// atLimit reports whether the offered rate is what a flow that wants more offers under the limit.
func (d *demand) atLimit(offered, limit float64) bool {
	from := atLimitFrom
	if d.attains > 0 {
		from = min(from, d.attains*(1-3*d.noise()))
	}
	return offered >= from*limit && offered <= atLimitTo*limit
}

// sated reports whether the flow is known to have all that it wants: it has lost nothing for some cycles.
func (d *demand) sated() bool { return d.metered && d.lossless >= losslessCycles }

// probe sets the headroom, and reports whether the claim is to move. measured reports that the level is what was offered after a step.
func (d *demand) probe(changed change, measured bool, offered, limit, reserved float64) bool {
	size := max(leastProbe, probeNoise*d.noise())
	ended := false
	if d.probing > 0 {
		d.probing--
		d.taken += offered / probeCycles
		if ended = d.probing == 0 || d.unresponsive && changed == steady; ended {
			d.probing = 0
		}
	}
	attains := 0.
	switch {
	case d.sated() || !d.atLimit(offered, limit):
	case measured: // the mean of a cycle with a step says nothing of what it attains
		attains = min(d.level/limit, 1)
	default:
		attains = min(offered/limit, 1)
	}
	if changed == steady {
		d.steady++
	} else {
		d.steady = 0
	}
	switch {
	case changed == began: // what it offers more than in the part of a cycle is no headroom that it takes
		d.probing, d.base, d.taken = probeCycles, d.level, 0
	case changed == fell:
		if d.falls++; attains == 0 {
			d.falls = 0
		}
		d.rises, d.probing, d.headroom, d.waking, d.wait, d.attains = 0, 0, 0, false, d.backoff, 0
		if d.falls >= growing {
			d.attains, d.wait = attains, 0
		}
	case changed == rose:
		d.rises++
		d.waking = d.waking || limit < reserved && offered > leapsOver*limit && !(d.unresponsive && measured)
		d.falls, d.wait, d.backoff = 0, firstProbe, firstProbe
		switch again := !d.unresponsive && d.probing > 0 && d.level < d.base*(1+size/2); {
		case d.waking || d.rises >= growing || attains > 0 && !d.unresponsive && !again:
			d.grow(attains)
		case !again: // what is taken at the end of the probe decides, and not each small rise within it
			d.probing, d.headroom = 0, 0
		}
	case ended && d.taken >= d.base*(1+size/2):
		d.restart(d.taken, probeCycles)
		d.grow(attains)
	case ended:
		d.headroom, d.waking, d.attains = 0, false, 0
		d.wait, d.backoff = d.backoff, min(2*d.backoff, lastProbe)
	default:
		d.rises = 0
		if d.steady > calmCycles {
			d.falls = 0
		}
		return d.await(size, limit)
	}
	return true
}

// grow doubles the headroom of a flow that took it.
func (d *demand) grow(attains float64) {
	d.headroom = min(max(2*d.headroom, leastProbe, probeNoise*d.noise()), lastHeadroom)
	d.probing, d.base, d.taken, d.attains = probeCycles, d.level, 0, attains
	d.wait, d.backoff, d.falls = firstProbe, firstProbe, 0
}

// await begins a probe if it is time for one and the flow is at its limit.
func (d *demand) await(size, limit float64) bool {
	switch {
	case d.unresponsive || d.sated() || d.probing > 0 || limit >= d.level*(1+size) || d.age <= falseCycles:
		return false
	case d.wait > 0:
		d.wait--
		return false
	}
	d.headroom, d.probing, d.base, d.taken = size, probeCycles, d.level, 0
	return true
}

// target is the claim that follows from the trend alone.
func (d *demand) target(reserved, floor float64) float64 {
	room := 1 + d.margin()
	switch {
	case d.unresponsive || !d.metered:
	case d.sated() && d.diffs >= warmUp:
		room = 1 + d.levelError()
	default:
		room = min(room, 1+lossyMargin)
	}
	if d.attains > 0 {
		room = max(room, 1/d.attains)
	}
	want := max(d.level*room*(1+d.headroom), floor)
	if d.waking || d.learns() && d.level > learningUse*reserved {
		want = max(want, reserved)
	}
	if d.whole > 0 {
		d.whole--
		used, since := reserved, 1
		if d.follows > 0 {
			used, since = reserved*d.follows, growing
		}
		if d.level*(1+wholeNoise*d.noise()*(1+2/math.Sqrt(float64(d.samples)))) < used && d.whole < wholeCycles-since {
			d.whole = 0
		} else {
			want = max(want, reserved)
		}
	}
	if d.whole == 0 {
		d.follows = 0
	}
	return want
}

// settle moves the claim to the target: at once if the trend changed, and otherwise if it is far
// from it, or above it by more than the level may be wrong. A seizure waits for as many cycles as the flow's false seizures suggest.
func (d *demand) settle(target, reserved float64, changed bool) {
	least, more := 0., 0.
	if !changed {
		least = max(leastChange, d.noise()/2)
		if more = least; target <= reserved {
			more = max(leastRise, d.noise()/2/math.Sqrt(float64(max(d.samples, 1)))) // half of the standard error of the level
		}
	}
	switch {
	case target < d.claim*(1-least):
		if d.over++; d.over <= d.patience {
			return
		}
		if target < d.claim*(1-leastChange) {
			d.former, d.age = d.claim, 0
			d.cut()
		}
		d.claim, d.over = target, 0
		return
	case target > d.claim*(1+more) && (changed || d.age > falseCycles):
		if d.age <= falseCycles && target > (d.claim+d.former)/2 && d.level <= returnsTo*d.former {
			d.mistakes++
			if d.claim < d.former*(1-grave) {
				if d.calm < forgiveCycles {
					d.patience = min(2*d.patience+2, mostPatience)
				}
				d.calm = 0
			}
			d.former = math.Inf(1)
		}
		d.claim, d.cuts = target, 0
	}
	d.over = 0
}

// cut counts a seizure. A flow that does not react to its limit settles after a few. One that attains a part of its limit,
// as TCP behind a meter, follows each, and would lose its reservation step by step: it gets it back, and has it as long as it
// attains that part of it.
func (d *demand) cut() {
	if d.apart > trendMemory {
		d.cuts = 0
	}
	d.apart = 0
	if d.cuts++; d.cuts < followingCuts || d.level < leastAttained*d.claim || d.noise() < quietNoise || d.noise() > loudNoise {
		return
	}
	d.whole, d.follows, d.cuts = wholeCycles, d.level/d.claim, 0
}
