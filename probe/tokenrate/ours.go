package tokenrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Ours sends a train back to back, and one that is twice as long until it meets a
// limit for long enough; then shorter ones, after silence, that find the bucket full.
type Ours struct {
	// Capacity of the path, in bit/s of layer 2.
	Capacity float64
	// Budget bounds what all trains send, in bytes of layer 2; 0 is 5 MB.
	Budget unit.Bytes
	// Time bounds how long silences for the bucket may last in all; 0 is 0.5 s.
	Time time.Duration
}

// Constants of what is sent, ours.
const (
	oursBudget = 5_000_000
	oursTime   = 500 * time.Millisecond
	// lookCount packets are a queue of 8 ms in a shaper of 50 Mbit/s; firstCount are enough
	// for most.
	lookCount, firstCount = 32, 100
	// enoughTail packets under the limit are enough, and sharpTail if the runs that
	// agree scatter no more than sharp, relative.
	enoughTail, sharpTail, sharp = 800, 300, 3e-4
	// slowTail packets that last slowTime, in ns, are enough as well: a stamp's error is
	// 1e-4 of that.
	slowTail, slowTime = 40, 8e6
	// sharpRun packets in a row that agree are no chance.
	sharpRun = 32
	// leastMore times the train before is worth another.
	leastMore = 1.25
	// mostTrains ends it where samples do not tell what was sent.
	mostTrains = 30
	// mostFills is how often the bucket is found again.
	mostFills = 5
	// fills is how often over a bucket could fill in the silence before: others take
	// up to a half of what comes in.
	fills = 3
)

// The trains' purposes.
const (
	ladder = "tokenrate/train"
	refill = "tokenrate/bucket"
)

// read is what the samples so far say.
type read struct {
	climbed []probe.Sample // of the ladder
	last    Result         // of these
	found   []float64      // in the bucket, by trains that emptied it
	full    float64        // what it held before the first train, if nothing has changed
}

func (m Ours) read(samples []probe.Sample) (r read) {
	for i := range samples {
		if samples[i].Purpose != refill {
			r.climbed = append(r.climbed, samples[i])
		}
	}
	if len(r.climbed) == 0 {
		r.last = nothing("nothing was sent")
		return r
	}
	// Of a train that shows nothing, because an end stood still, the one before may.
	at := len(r.climbed) - 1
	r.last = Estimate(&r.climbed[at], m.Capacity)
	for !r.last.Rate.Known() && r.last.Joint == nil && at > 0 {
		at--
		if e := Estimate(&r.climbed[at], m.Capacity); e.Rate.Known() && !e.Rate.AtLeast || e.Joint != nil {
			r.last = e
		}
	}
	if !r.rated() {
		return r
	}
	rate := r.last.Rate.Value
	// No train takes more than there is, and the first that met the limit took all that
	// those before it had left.
	most := 0.0
	for i := range r.climbed[:at+1] {
		e := r.last
		if i < at {
			e = Estimate(&r.climbed[i], m.Capacity)
		}
		c := e.line
		if len(c.at) < 2*leastTail || c.headless {
			break
		}
		level := c.level(rate)
		most, r.full = math.Max(most, level), math.Max(r.full, full(r.climbed[:i+1], rate, level))
		if c.slopes(e.from, len(c.at), c.bytes) < rate*1.05 {
			break
		}
	}
	if most > 0 {
		r.found = append(r.found, most)
	}
	for i := range samples {
		if samples[i].Purpose != refill {
			continue
		}
		e := Estimate(&samples[i], m.Capacity)
		if e.k >= sharpRun && e.Rate.Value < rate*(1-5*others) {
			r.last = nothing(fmt.Sprintf("it changed from %.1f to %.1f Mbit/s", rate/1e6, e.Rate.Value/1e6))
			return r
		}
		// One that came faster did not empty the bucket, or the rate is another now.
		c := e.line
		if len(c.at) >= 2*leastTail && !c.headless && c.slopes(e.from, len(c.at), c.bytes) < rate*1.05 {
			r.found = append(r.found, c.level(rate))
		}
	}
	return r
}

// long tells whether a tail of packets lasted long enough. More of them would say
// hardly more, and stand in a slow shaper's queue before everybody else's.
func (r read) long(tail int) bool {
	at := r.last.line.at
	return !r.last.crossed && tail >= slowTail && at[len(at)-1]-at[r.last.from] >= slowTime
}

// rated tells whether there is a rate to read buckets by.
func (r read) rated() bool { return r.last.Rate.Known() && !r.last.Rate.AtLeast }

// alike is how many trains have to find the same. What others take comes in packets,
// so that two may well find the same too little.
func (r read) alike() int {
	if r.last.crossed {
		return 3
	}
	return 2
}

// Next is the train that comes after those that were sent, or ok is false if there
// are enough.
func (m Ours) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	silent := cmp.Or(m.Time, oursTime)
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
		for _, p := range samples[i].Parts {
			silent -= p.Pause
		}
	}
	if len(samples) >= mostTrains {
		return probe.Train{}, false
	}
	r := m.read(samples)
	tail := len(r.last.line.at) - r.last.from
	if r.rated() && (tail >= enoughTail || r.last.sd <= sharp && (tail >= sharpTail || r.long(tail))) {
		t, ok = m.again(r, len(samples)-len(r.climbed))
		return t, ok && t.Bytes() <= budget && t.Parts[0].Pause <= silent
	}
	count, most := lookCount, int(budget/(mtu+probe.Overhead))
	if n := len(r.climbed); n > 0 {
		before := r.climbed[n-1].Count()
		count = max(firstCount, 2*before)
		if r.rated() && !r.last.Policed && !r.last.crossed {
			// Nobody else is there: a tail that is long enough is. What is too much for a
			// policer does not wait.
			enough := r.last.from + max(slowTail, int(slowTime*r.last.Rate.Value/8e9/(mtu+probe.Overhead))) + 2
			count = min(count, max(enough, int(leastMore*float64(before))))
		}
		// What is left of the budget does where twice as many are too many.
		if count > most && float64(most) >= leastMore*float64(before) {
			count = most
		}
	}
	t = probe.Uniform(ladder, count, mtu, 0)
	return t, t.Bytes() <= budget
}

// again is a train that finds the bucket, after enough silence to fill it; ok is
// false if two have found the same.
func (m Ours) again(r read, sent int) (t probe.Train, ok bool) {
	rate := r.last.Rate.Value
	if sent >= mostFills || len(r.found) == 0 || !size(r.found, rate, r.alike()).AtLeast {
		return probe.Train{}, false
	}
	b := math.Max(math.Max(slices.Max(r.found), r.full), mtu)
	into := math.Max(1-rate/m.Capacity, 0.05)
	t = probe.Uniform(refill, int(1.1*b/into/(mtu+probe.Overhead))+4*leastTail, mtu, 0)
	// Twice as long each time: a bucket that was not full then holds more.
	t.Parts[0].Pause = (time.Millisecond + time.Duration(fills*b*8e9/rate)) << sent
	return t, true
}

// Estimate is the token rate that the ladder's last train shows, and the bucket that
// its first one found, and those after silence.
func (m Ours) Estimate(samples []probe.Sample) Result {
	r := m.read(samples)
	if !r.rated() {
		return r.last
	}
	switch last := r.climbed[len(r.climbed)-1]; {
	case last.Purpose == drainPurpose:
		// Too much was sent before it, also again and not in the samples, to say what
		// the bucket held at first.
		b := r.last.line.level(r.last.Rate.Value)
		r.last.Bucket = probe.Estimate{Value: b, Low: b, AtLeast: true}
	case len(r.found) > 0:
		r.last.Bucket = size(r.found, r.last.Rate.Value, r.alike())
	}
	return r.last
}
