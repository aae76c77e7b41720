package limiter

import (
	"cmp"
	"math"
	"strings"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Detector detects a limiter from trains back to back, of any method, and from a train of
// small packets at a low rate, which shows an end that is scheduled at intervals.
type Detector struct {
	// Capacity of the path in bit/s of layer 2; with 0 the method measures it.
	Capacity float64
	// Packet is the least size of the IP packets of trains that show a limiter; 0 is 986.
	Packet int
	// Gentle sends only packets at a low rate: other methods' trains show the limiter.
	Gentle bool
	// Budget bounds the layer 2 bytes of all trains; 0 is 5 MB.
	Budget unit.Bytes
}

// Constants of Headgate's method.
const (
	oursBudget = 5_000_000
	mtu        = 1500
	firstCount = 100
	// Three small packets fit a bucket of one full frame.
	shortBursts, shortCount, shortSize = 60, 3, 500
	shortPause                         = 2 * time.Millisecond
	// A small packet every 0.1 ms shows a sleep of 0.4 ms (the shortest of the seed). 0.2
	// s show at least one sleep of each schedule up to 150 ms (A of 30 ms, S of 120 ms).
	lightSize, lightCount, longCount = 80, 2000, 12_000
	lightGap                         = 100_000 // ns
	enoughTicks                      = 12
	enoughTail                       = 400
)

// PurposeLight is that of trains of small packets at a low rate, which no limiter delays or drops.
const PurposeLight = "limiter/light"

const (
	purposeShort = "limiter/short"
	purposeTrain = "limiter/train"
	purposePaced = "limiter/paced"
)

// Estimate returns the limiter type of the path.
func (m Detector) Estimate(samples []probe.Sample) Result {
	return m.evidence(samples).classify()
}

// full returns the least layer 2 size of a packet of trains that show a limiter.
func (m Detector) full() int {
	if m.Packet > 0 {
		return m.Packet + probe.Overhead
	}
	return fullFrame
}

func (m Detector) evidence(samples []probe.Sample) *evidence {
	return newEvidence(samples, m.Capacity, m.full())
}

// Next returns the next train for the samples so far. ok is false if they suffice.
func (m Detector) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	count, lights, shorts := 0, 0, 0
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
		switch p := samples[i].Parts; {
		case strings.HasPrefix(samples[i].Purpose, PurposeLight):
			lights++
		case len(p) > minTrain:
			shorts++
		case len(p) == 1 && p[0].Frame() >= m.full():
			count = max(count, p[0].Count)
		}
	}
	e := m.evidence(samples)
	t = m.next(e, count, lights, shorts, budget)
	return t, len(t.Parts) > 0 && t.Bytes() <= budget
}

func (m Detector) next(e *evidence, count, lights, shorts int, budget unit.Bytes) probe.Train {
	switch {
	case m.Gentle && lights == 0:
		return e.lightTrain(lightCount, m.leastLight())
	case m.Gentle:
		return probe.Train{}
	case shorts == 0 && m.Capacity == 0:
		t := probe.Train{Purpose: purposeShort}
		for range shortBursts {
			t.Parts = append(t.Parts, probe.Part{Count: shortCount, Size: shortSize, Pause: shortPause})
		}
		return t
	case count == 0:
		return probe.Uniform(purposeTrain, firstCount, mtu, 0)
	case e.ticks && e.ticking.seen >= enoughTicks:
		return probe.Train{}
	case lights == 0:
		return e.lightTrain(lightCount, m.leastLight())
	case lights == 1 && !e.ticks && e.hasStalls():
		return e.lightTrain(longCount, m.leastLight())
	case e.sufficient():
		return probe.Train{}
	}
	maxCount := int(budget) / full
	if count *= 2; count > maxCount && maxCount > count/2 {
		count = maxCount
	}
	t := probe.Uniform(purposeTrain, count, mtu, 0)
	if e.overflowed() {
		t.Purpose, t.Parts[0].Rate = purposePaced, e.pace()
	}
	return t
}

// leastLight returns the least packets of a light train.
func (m Detector) leastLight() int {
	if m.Gentle {
		return 3 * minTrain
	}
	return 10 * minTrain
}

// lightTrain returns a train so slow that no limiter found so far delays it.
func (e *evidence) lightTrain(count, least int) probe.Train {
	gap := float64(lightGap)
	small := float64(lightSize + probe.Overhead)
	slowest := math.Inf(1)
	for i := range e.trains {
		if v := &e.trains[i]; len(v.at) > 1 && (i == len(e.trains)-1 || len(v.at) >= minTrain) {
			slowest = math.Min(slowest, v.arrivalRate())
		}
	}
	if slow := 3 * small * 8e9 / slowest; slow > gap {
		count = max(int(float64(count)*gap/slow), least)
		gap = slow
	}
	return probe.Uniform(PurposeLight, count, lightSize, unit.Rate(small*8e9/gap))
}

// hasStalls reports whether something stalled during the light trains.
func (e *evidence) hasStalls() bool {
	if e.sender != nil && len(e.sender.sleeping) >= 2*minSleeps || e.receiver != nil && len(e.receiver.sleeping) >= 2*minSleeps {
		return false
	}
	for i := range e.light {
		v := &e.light[i]
		if len(v.unsent())+len(v.silences()) > 0 {
			return true
		}
	}
	return false
}

// sufficient reports whether more trains would show nothing new.
func (e *evidence) sufficient() bool {
	t := e.longest
	if t == nil {
		return false
	}
	if p := e.policed(); p != nil {
		paced := 0
		for i := range e.tails {
			if t := &e.tails[i]; t.v.asked > 0 && t.policed() && len(t.v.n) >= enoughTail/2 {
				paced++
			}
		}
		return paced > 1
	}
	if e.shaped(t) && t.onset < 0 {
		return len(t.took.at)-t.knee >= enoughTail || t.steady()
	}
	return false
}

// overflowed reports whether a train lost more than the usual loss of the path.
func (e *evidence) overflowed() bool {
	for i := range e.trains {
		if v := &e.trains[i]; !v.overflow && v.lost() > e.loss+rises {
			return true
		}
	}
	return false
}

// pace returns the rate at which a train shows a policer: twice the rate that last
// arrived, but less than the link's, so that only the limiter is overloaded. If that was
// too slow to be limited, it is between that rate and the link's.
func (e *evidence) pace() unit.Rate {
	v := &e.trains[len(e.trains)-1]
	top := 0.9 * e.link
	if e.capacity > 0 {
		top = min(top, 0.9*e.capacity)
	}
	if top == 0 {
		top = unknownTop
	}
	rate := top
	switch {
	case v.asked > 0 && v.lost() <= e.loss+rises:
		rate = max(2*v.offered(), math.Sqrt(v.offered()*top))
	case v.asked > 0:
		// Use another rate than before: trains of several rates show the cross traffic.
		rate = 2 * v.arrivalRate()
		if len(v.at) < minPiece {
			rate = 2 * v.offered() * (1 - v.lost())
		}
		if rate > v.offered()/1.5 {
			rate *= 1.6
		}
	case len(v.at) > minPiece:
		rate = 2 * v.arrivalRate()
	}
	if rate <= 0 {
		rate = top / 8
	}
	return unit.Rate(min(rate, top))
}

// arrivalRate returns the rate at which a train arrived; 0 if hardly any packet did.
func (v *trainView) arrivalRate() float64 {
	last := len(v.at) - 1
	if last < 1 {
		return 0
	}
	return v.rate(float64(last), v.at[last]-v.at[0])
}

// unknownTop is the first pacing rate on a path from which hardly any packet arrived.
const unknownTop = 500e6
