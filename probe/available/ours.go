package available

import (
	"cmp"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Result is the available bandwidth of a path.
type Result struct {
	// Available is in bit/s of layer 2.
	Available probe.Estimate `json:"available"`
	// Held is the layer 2 bytes of the longest train that passed at Available or more. A limiter with a larger bucket would not have shown.
	Held unit.Bytes `json:"held_bytes,omitempty"`
	// Notes are warnings about the result.
	Notes []string `json:"notes,omitempty"`
}

// HoldTrains keeps the tight link busy for a while, with a short queue, and measures what
// passes through it.
type HoldTrains struct {
	// Capacity and TokenRate are the path's, in bit/s of layer 2, and Bucket is the
	// shaper's bucket size in bytes, from the earlier methods; 0 is unknown.
	Capacity, TokenRate, Bucket float64
	// Packet is the size of the IP packets in bytes; 0 is 1500.
	Packet int
	// Gentle makes short queues, for slow links: the results of trains at different rates then tell less of where the tight link is.
	Gentle bool
	// Budget bounds the layer 2 bytes of all trains; 0 is 5 MB.
	Budget unit.Bytes
	// Time is the period after which no train begins; 0 is 2.5 s.
	Time time.Duration
}

// Constants of Headgate's method.
const (
	// oursBudget and oursTime are the goal of 5 MB and of 3 s less one train.
	oursBudget = 5_000_000
	oursTime   = 2500 * time.Millisecond
	mtu        = 1500

	// A hold has firstHold packets, and doubles with each train up to maxHold. Its head
	// has headPackets and 1/headPart of the hold. The queue of the head outlasts the
	// variation of cross traffic of half the link during the hold (a deviation of 10
	// packet times in 100).
	firstHold   = 100
	minHold     = 60
	maxHold     = 400
	headPackets = 16
	headPart    = 6
	// maxHead is the maximum queue delay of a head, firstTime the maximum duration of
	// the first hold, whose rate may be far off, and maxTime that of any hold, in ns.
	maxHead   = 3e6
	firstTime = 10e6
	maxTime   = 40e6
	// drains is the fraction of the head's queue that drains by the end of the hold, and
	// minRate the minimum rate of a hold relative to the available bandwidth.
	drains  = 0.8
	minRate = 0.5
	// rateVariation is the relative change of the rates of alternate trains. If the known link is
	// the tight one, results do not follow the change (estimate.go).
	rateVariation = 0.15
	// gentleVariation and gentleHead are those of gentle trains: 60 packets and a head of 2 make a queue of 5 packets.
	gentleVariation, gentleHead = 0.05, 2
	// gentleFirst is the rate of the first gentle train relative to the tight link's, and gentleStep what each one that found no queue adds.
	gentleFirst, gentleStep = 0.8, 0.2
	gentleLongest           = 400 * time.Millisecond
)

func (m HoldTrains) packet() int { return cmp.Or(m.Packet, mtu) }

func (m HoldTrains) shaped() bool {
	return m.TokenRate > 0 && (m.Capacity == 0 || m.TokenRate < 0.97*m.Capacity)
}

// Next returns the next train for the samples so far. ok is false if they suffice.
func (m HoldTrains) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	r := m.read(samples)
	left := cmp.Or(m.Budget, oursBudget) - r.bytes
	if time.Duration(r.to-r.from) > cmp.Or(m.Time, oursTime) || left <= 0 {
		return t, false
	}
	if r.rate == 0 {
		t = probe.Uniform("available/together", headPackets, m.packet(), 0)
		return t, t.Bytes() <= left && len(samples) < 5
	}
	if a := m.estimate(&r).Available; !m.Gentle && len(r.trains) >= enoughTrains && a.Known() && !a.AtLeast && a.High-a.Low <= enough*a.Value {
		return t, false
	}
	rate, known := r.guess()
	longest := maxTime
	hold := firstHold
	if !known {
		rate, longest = r.rate*0.3, firstTime
		switch {
		case m.Gentle:
			rate = r.rate * min(gentleFirst+gentleStep*float64(len(r.trains)), 1)
		case r.shaped:
			rate = m.assume(&r)
		}
	} else if r.receiverStall == 0 {
		hold = min(firstHold<<min(len(r.trains)-1, 8), maxHold)
	}
	frame := m.packet() + probe.Overhead
	packets := func(ns, rate float64) int { return int(ns*rate/8e9) / frame }
	hold = max(min(hold, packets(longest, rate)), minHold)
	head := probe.Part{Count: min(headPackets+hold/headPart, max(packets(maxHead, r.rate), 4)), Size: m.packet(), Pause: r.receiverStall}
	variation := rateVariation
	if m.Gentle {
		head.Count, variation = gentleHead, gentleVariation
	}
	drop := float64(head.Count * frame) // bytes in the queue when the hold begins
	if r.shaped {
		if head, drop, hold = m.drain(&r, rate); known {
			hold = min(hold, max(packets(shapedTime, rate), minHold))
		}
		if m.Gentle {
			hold = minHold
		}
	}
	if m.Gentle { // little is learned while it lasts
		rate = max(rate, min(float64(minHold*frame)*8/gentleLongest.Seconds(), r.rate))
	}
	if limit := int(left)/frame - 2*firstHold; head.Count > limit && r.shaped && !known {
		head.Count = limit // the last try
	}
	rest := int(left)/frame - head.Count
	if rest < minHold || head.Count < 1 {
		return t, false
	}
	hold = min(hold, rest)
	// The average rate of the whole train is the available bandwidth, so that its end
	// finds a short queue.
	rate *= max(1-drains*drop/(float64(hold*frame)+drop), minRate)
	if known && !r.shaped {
		rate *= 1 + variation*float64(len(r.trains)%2*2-1)
	}
	t = probe.Train{Purpose: "available/hold", Parts: []probe.Part{head, {Count: hold, Size: m.packet(), Rate: unit.Rate(rate)}}}
	return t, true
}
