package available

import (
	"cmp"
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
	// sway is by how much trains are faster and slower in turn. Where the link that is
	// known is the tight one, answers do not follow that (estimate.go).
	sway = 0.15
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
	if a := m.estimate(&r).Available; len(r.trains) >= enoughTrains && a.Known() && !a.AtLeast && a.High-a.Low <= enough*a.Value {
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
	if known && !r.shaped {
		rate *= 1 + sway*float64(len(r.trains)%2*2-1)
	}
	t = probe.Train{Purpose: "available/hold", Parts: []probe.Part{head, {Count: hold, Size: mtu, Rate: unit.Rate(rate)}}}
	return t, true
}
