package tokenrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Ladder sends a train back to back, and doubles its length until it is limited for long
// enough. Then it sends shorter trains, after silences, that find the bucket full.
type Ladder struct {
	// Capacity of the path, in bit/s of layer 2.
	Capacity float64
	// Rate is that of the trains, in bit/s of layer 2; 0 sends back to back. A token rate above it is not found.
	Rate unit.Rate
	// Packet is the size of the IP packets in bytes; 0 is 1500.
	Packet int
	// Longest bounds the time of a train at Rate after the first, where a queue must not be long. Trains then end with fewer limited packets, none is longer after
	// one that others' traffic slowed, and of the bucket only a bound is found. 0 is no bound.
	Longest time.Duration
	// Budget bounds the layer 2 bytes of all trains; 0 is 5 MB.
	Budget unit.Bytes
	// Time bounds the total of the silences for the bucket; 0 is 0.5 s.
	Time time.Duration
}

// Constants of the trains, chosen by Headgate.
const (
	oursBudget = 5_000_000
	oursTime   = 500 * time.Millisecond
	// lookCount packets are a queue of 8 ms in a shaper of 50 Mbit/s; firstCount packets
	// are enough for most paths.
	lookCount, firstCount = 32, 100
	// A tail of enoughTail limited packets suffices, and one of sharpTail packets if the
	// runs that agree have a relative scatter of at most sharp.
	enoughTail, sharpTail, sharp = 800, 300, 3e-4
	// A tail of slowTail packets that lasts slowTime ns suffices as well: a timestamp
	// error is 1e-4 of that.
	slowTail, slowTime = 40, 8e6
	// gentleCount packets are the first train, gentleMost the longest, each is half as long again as the last so that the one that empties a bucket makes a
	// short queue, and a tail of gentleTail packets suffices, where the time of a train is bounded.
	gentleCount, gentleMost, gentleTail = 32, 150, 16
	// gentlePart is the rate of a train relative to a bound of the token rate.
	gentlePart = 1.25
	// gentleQueue is the queue after which no longer train follows.
	gentleQueue = 10 * time.Millisecond
	// sharpRun packets in a row do not agree by chance.
	sharpRun = 32
	// minGrowth is the minimum growth of the next train.
	minGrowth = 1.25
	// maxTrains bounds the trains if the samples have no send times.
	maxTrains = 30
	// maxRefills bounds the measurements of the bucket size.
	maxRefills = 5
	// refillFactor is how many times the bucket could fill in the silence before a train: cross
	// traffic uses up to a half of the tokens.
	refillFactor = 3
)

// The purposes of the trains.
const (
	ladder = "tokenrate/train"
	refill = "tokenrate/bucket"
)

// read is the result of the samples so far.
type read struct {
	climbed []probe.Sample // the samples of the ladder
	last    Result         // the result of the ladder
	found   []float64      // bytes in the bucket, from trains that emptied it
	full    float64        // bytes in the bucket before the first train
}

func (m Ladder) read(samples []probe.Sample) (r read) {
	for i := range samples {
		if samples[i].Purpose != refill {
			r.climbed = append(r.climbed, samples[i])
		}
	}
	if len(r.climbed) == 0 {
		r.last = noEstimate("no train was sent")
		return r
	}
	// If a train shows nothing because an end stalled, use the previous train.
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
	// No train finds more than the bucket size. The first train that was limited found
	// all that the trains before it had left.
	highest := 0.0
	for i := range r.climbed[:at+1] {
		e := r.last
		if i < at {
			e = Estimate(&r.climbed[i], m.Capacity)
		}
		c := e.line
		if len(c.at) < 2*minTail || c.headless {
			break
		}
		level := c.level(rate)
		highest, r.full = math.Max(highest, level), math.Max(r.full, full(r.climbed[:i+1], rate, level))
		if c.slopes(e.from, len(c.at), c.bytes) < rate*1.05 {
			break
		}
	}
	if highest > 0 {
		r.found = append(r.found, highest)
	}
	for i := range samples {
		if samples[i].Purpose != refill {
			continue
		}
		e := Estimate(&samples[i], m.Capacity)
		if e.k >= sharpRun && e.Rate.Value < rate*(1-5*crossTraffic) {
			r.last = noEstimate(fmt.Sprintf("token rate changed from %.1f to %.1f Mbit/s", rate/1e6, e.Rate.Value/1e6))
			return r
		}
		// A faster train did not empty the bucket, or the rate has changed.
		c := e.line
		if len(c.at) >= 2*minTail && !c.headless && c.slopes(e.from, len(c.at), c.bytes) < rate*1.05 {
			r.found = append(r.found, c.level(rate))
		}
	}
	return r
}

// long reports whether a tail of packets lasted long enough. More packets would hardly
// improve the result, and would delay the traffic of others in a slow shaper.
func (m Ladder) long(r read, tail int) bool {
	at := r.last.line.at
	return !r.last.crossTraffic && tail >= m.shortTail() && at[len(at)-1]-at[r.last.from] >= slowTime
}

// shortTail returns the least packets of a tail.
func (m Ladder) shortTail() int {
	if m.Longest > 0 {
		return gentleTail
	}
	return slowTail
}

// frame returns the layer 2 size of a packet.
func (m Ladder) frame() int { return cmp.Or(m.Packet, mtu) + probe.Overhead }

// rated reports whether the rate is known well enough to compute the bucket size.
func (r read) rated() bool { return r.last.Rate.Known() && !r.last.Rate.AtLeast }

// neededAgreement returns how many trains must find the same bucket size. Cross traffic uses whole
// packets, so that two trains may find the same size that is too small.
func (r read) neededAgreement() int {
	if r.last.crossTraffic {
		return 3
	}
	return 2
}

// Next returns the next train for the samples so far. ok is false if they suffice.
func (m Ladder) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	silent := cmp.Or(m.Time, oursTime)
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
		for _, p := range samples[i].Parts {
			silent -= p.Pause
		}
	}
	if len(samples) >= maxTrains {
		return probe.Train{}, false
	}
	r := m.read(samples)
	tail := len(r.last.line.at) - r.last.from
	if r.rated() && (tail >= enoughTail || r.last.sd <= sharp && (tail >= sharpTail || m.long(r, tail))) {
		t, ok = m.again(r, len(samples)-len(r.climbed))
		return t, ok && m.Longest == 0 && t.Bytes() <= budget && t.Parts[0].Pause <= silent
	}
	count, maxCount := lookCount, int(budget)/m.frame()
	if m.Longest > 0 {
		count, maxCount = gentleCount, min(maxCount, gentleMost, int(m.Longest.Seconds()*float64(m.Rate)/8/float64(m.frame())))
	}
	if n := len(r.climbed); n > 0 {
		before := r.climbed[n-1].Count()
		count = max(firstCount, 2*before)
		if m.Longest > 0 {
			return m.gentle(r, before, maxCount)
		}
		if r.rated() && !r.last.Policed && !r.last.crossTraffic {
			// Without cross traffic a tail of minimum length suffices. A policer's excess
			// packets cause no queue.
			enough := r.last.from + max(m.shortTail(), int(slowTime*r.last.Rate.Value/8e9/float64(m.frame()))) + 2
			count = min(count, max(enough, int(minGrowth*float64(before))))
		}
		// Use the remaining budget if it does not allow twice as many packets.
		if count > maxCount && float64(maxCount) >= minGrowth*float64(before) {
			count = maxCount
		}
	}
	t = probe.Uniform(ladder, count, m.frame()-probe.Overhead, m.Rate)
	return t, t.Bytes() <= budget
}

// gentle returns the train that follows one of before packets where the time of a train is bounded. Little above a rate that is a bound it makes a short queue.
func (m Ladder) gentle(r read, before, most int) (t probe.Train, ok bool) {
	if most < 2*minTail {
		return t, false
	}
	t = probe.Uniform(ladder, min(before*3/2, most), m.frame()-probe.Overhead, m.Rate)
	last := &r.climbed[len(r.climbed)-1]
	switch known := r.last.Rate; {
	case known.Known() && known.AtLeast:
		t.Parts[0].Rate = unit.Rate(gentlePart * known.Value)
		return t, t.Parts[0].Rate < m.Rate && last.Parts[0].Rate == m.Rate
	case known.Known():
		return t, before < most
	}
	return t, before < most && r.last.Joint != nil && r.last.Joint.Rate > limited*float64(m.Rate) && float64(last.Bytes())*8*(1/last.ArrivalRate()-1/last.SendingRate()) < gentleQueue.Seconds()
}

// again returns a train that finds the bucket size, after a silence that is long enough
// to fill the bucket. ok is false if enough trains found the same size.
func (m Ladder) again(r read, sent int) (t probe.Train, ok bool) {
	rate := r.last.Rate.Value
	if sent >= maxRefills || len(r.found) == 0 || !size(r.found, rate, r.neededAgreement()).AtLeast {
		return probe.Train{}, false
	}
	b := math.Max(math.Max(slices.Max(r.found), r.full), float64(m.frame()-probe.Overhead))
	offered := m.Capacity
	if m.Rate > 0 {
		offered = math.Min(offered, float64(m.Rate))
	}
	into := math.Max(1-rate/offered, 0.05)
	t = probe.Uniform(refill, int(1.1*b/into)/m.frame()+4*minTail, m.frame()-probe.Overhead, m.Rate)
	// Double the silence each time: a bucket that was not full then holds more.
	t.Parts[0].Pause = (time.Millisecond + time.Duration(refillFactor*b*8e9/rate)) << sent
	return t, true
}

// Estimate returns the token rate of the last ladder train, and the bucket size from the
// first train that emptied the bucket and from those after a silence.
func (m Ladder) Estimate(samples []probe.Sample) Result {
	r := m.read(samples)
	if !r.rated() {
		return r.last
	}
	r.last.full = r.full
	switch last := r.climbed[len(r.climbed)-1]; {
	case last.Purpose == drainPurpose:
		// The trains before it, some of which are not in the samples, sent too much to
		// know how much the bucket held at first.
		b := r.last.line.level(r.last.Rate.Value)
		r.last.Bucket = probe.Estimate{Value: b, Low: b, AtLeast: true}
	case len(r.found) > 0:
		r.last.Bucket = size(r.found, r.last.Rate.Value, r.neededAgreement())
	}
	return r.last
}
