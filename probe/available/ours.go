package available

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Result is what a path leaves to one more.
type Result struct {
	// Available is in bit/s of layer 2.
	Available probe.Estimate `json:"available"`
	// Notes say what was odd on the way.
	Notes []string `json:"notes,omitempty"`
}

// Ours keeps the tight link busy for a while, with little waiting, and reads what got
// through.
type Ours struct {
	// Capacity and TokenRate are the path's, in bit/s of layer 2, and Bucket is the
	// shaper's in bytes, as the methods before found them; 0 is unknown.
	Capacity, TokenRate, Bucket float64
	// Budget bounds what all trains send, in bytes of layer 2; 0 is 5 MB.
	Budget unit.Bytes
	// Time after which no train begins; 0 is 2.5 s.
	Time time.Duration
}

// Constants, ours.
const (
	// oursBudget and oursTime are the goal's 5 MB, and 3 s less a train.
	oursBudget = 5_000_000
	oursTime   = 2500 * time.Millisecond
	mtu        = 1500
	frame      = mtu + probe.Overhead

	// A hold of firstHold packets, and twice as many each time up to mostHold, behind a
	// head of headPackets and 1/headPart of it: what waits then outlasts how much cross
	// traffic of half the link varies while the hold lasts (a deviation of 10 packets'
	// time in 100).
	firstHold   = 100
	leastHold   = 60
	mostHold    = 400
	headPackets = 16
	headPart    = 6
	// mostHead is how long a queue a head makes at the most, firstTime how long the
	// first hold lasts, whose rate may be far off, and mostTime any, in ns.
	mostHead  = 3e6
	firstTime = 10e6
	mostTime  = 40e6
	// drains is how much of what waits behind the head the hold's rate lets drain by its
	// end, and leastRate how far below what is available it may be for that.
	drains    = 0.8
	leastRate = 0.5

	// blockPackets make a piece of a train: the pieces' differences are the interval's.
	blockPackets = 25
	// stampNoise of two stamps, in ns: each is within 1 us of the truth.
	stampNoise = 3e3

	// leastBusy packets are an answer, and enoughTrains whose interval is no wider than
	// enough of it end the measurement.
	leastBusy    = 40
	enoughTrains = 4
	enough       = 0.03
	// From so many lost on, and taken in groups, of all packets it is said.
	noted   = 0.005
	grouped = 0.1
	// policed is a loss that goes with no queue only where a policer drops.
	policed = 0.1
	// What the link's rate may be off by (standard deviation, part of it), if it was
	// known and if it was read from the trains; and what the model may, part of all.
	knownSlope = 0.02
	foundSlope = 0.35
	model      = 0.008
	// shapedModel: what waits in other queues as a window begins counts, too.
	shapedModel = 0.015

	z = 1.645 // 90 % of a normal distribution
)

func (m Ours) shaped() bool {
	return m.TokenRate > 0 && (m.Capacity == 0 || m.TokenRate < 0.97*m.Capacity)
}

// Next is the train that comes after those that were sent, or ok is false if there
// are enough.
func (m Ours) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	r := m.read(samples)
	left := cmp.Or(m.Budget, oursBudget) - r.bytes
	if time.Duration(r.to-r.from) > cmp.Or(m.Time, oursTime) || left <= 0 {
		return t, false
	}
	if r.rate == 0 {
		t = probe.Uniform("available/together", headPackets, mtu, 0)
		return t, t.Bytes() <= left && len(samples) < 5
	}
	if a := m.estimate(&r).Available; len(r.trains) >= enoughTrains && a.Known() && a.High-a.Low <= enough*a.Value {
		return t, false
	}
	rate, known := r.guess()
	longest := mostTime
	hold := firstHold
	if !known {
		rate, longest = r.rate*0.3, firstTime
		if r.shaped {
			rate = m.assume(&r)
		}
	} else if r.stood == 0 {
		hold = min(firstHold<<min(len(r.trains)-1, 8), mostHold)
	}
	packets := func(ns, rate float64) int { return int(ns * rate / 8e9 / frame) }
	hold = max(min(hold, packets(longest, rate)), leastHold)
	head := probe.Part{Count: min(headPackets+hold/headPart, max(packets(mostHead, r.rate), 4)), Size: mtu, Pause: r.stood}
	drop := float64(head.Count) * frame // bytes that wait when the hold begins
	if r.shaped {
		if head, drop, hold = m.drain(&r, rate); known {
			hold = min(hold, max(packets(shapedTime, rate), leastHold))
		}
	}
	if most := int(left)/frame - 2*firstHold; head.Count > most && r.shaped && !known {
		head.Count = most // the last try
	}
	rest := int(left)/frame - head.Count
	if rest < leastHold || head.Count < 1 {
		return t, false
	}
	hold = min(hold, rest)
	// The train as a whole comes at what is available: its end finds little waiting.
	rate *= max(1-drains*drop/(float64(hold)*frame+drop), leastRate)
	t = probe.Train{Purpose: "available/hold", Parts: []probe.Part{head, {Count: hold, Size: mtu, Rate: unit.Rate(rate)}}}
	return t, true
}

// Estimate is what all trains say together.
func (m Ours) Estimate(samples []probe.Sample) Result {
	r := m.read(samples)
	return m.estimate(&r)
}

func (m Ours) estimate(r *reading) (out Result) {
	if r.busy.packets < leastBusy || len(r.blocks) < 2 {
		because := fmt.Sprintf("the tight link was seen busy between %.0f packets only", r.busy.packets)
		if r.lost > policed*r.sent {
			because += fmt.Sprintf(", and %.0f %% of all were lost: what is too fast is dropped and does not wait", 100*r.lost/r.sent)
		}
		out.Available = probe.CannotTell(because)
		return out
	}
	if !r.shaped && r.heldTrains >= 2 {
		out.Available = probe.CannotTell(fmt.Sprintf("packets were held back for up to %v at a time, in %d of %d trains: a limiter that gives something out every so often", r.held.Round(100*time.Microsecond), r.heldTrains, len(r.trains)))
		return out
	}
	a := min(max(r.busy.available(r.rate), 0), r.rate)
	variance := 0.0
	for _, b := range r.blocks {
		d := b.bits*1e9 - r.rate*b.growth - a*b.gap
		variance += d * d
	}
	covered := math.Min(r.busy.gap/float64(r.to-r.from), 1)
	n := float64(len(r.blocks))
	se := math.Sqrt(variance*n/(n-1)) / r.busy.gap * math.Sqrt(1-covered)
	slope := knownSlope
	if m.Capacity == 0 && !r.shaped {
		slope = foundSlope
	}
	slope *= r.rate * r.busy.growth / r.busy.gap
	rest := model * a
	if r.shaped {
		rest = shapedModel * a
	}
	half := z * (1 + 1.5/n) * math.Sqrt(se*se+slope*slope+rest*rest) // Student's, about
	out.Available = probe.Estimate{Value: a, Low: max(a-half, 0), High: a + half}
	out.Notes = r.notes()
	return out
}

// notes are what was odd on the way.
func (r *reading) notes() (out []string) {
	if r.stood > 0 {
		out = append(out, fmt.Sprintf("the receiver stood still for up to %v at a time; what came then is left out", r.stood.Round(10*time.Microsecond)))
	}
	if r.waited > grouped*r.sent {
		out = append(out, "the receiver takes packets in groups: with interrupts coalesced over 100 us the answer may be a fifth too low")
	}
	if r.lost > noted*r.sent {
		out = append(out, fmt.Sprintf("%.1f %% of the packets were lost", 100*r.lost/r.sent))
	}
	return out
}
