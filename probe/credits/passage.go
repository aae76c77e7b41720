package credits

import (
	"math"
	"strings"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Passage is what a train showed, without its packets: a measurement may have millions.
type Passage struct {
	// Idle is set if a silence in which the bucket filled was before the train.
	Idle bool
	// Hold is set if the train confirms a rate.
	Hold bool
	// From and To are the first and the last arrival, in ns of the receiver's clock.
	From, To int64
	// Sent and Passed are layer 2 bytes. Again is those that were sent of the same train before it, because an end disturbed it, and AgainPassed those that passed.
	Sent, Passed, Again, AgainPassed unit.Bytes
	// Held is the layer 2 bytes of the held part of a train that arrived, and HeldSeconds how long they took.
	Held        unit.Bytes
	HeldSeconds float64
	// Offered is the rate at which the packets of Rate were sent, in bit/s of layer 2: of a train its second half, as its sender may have stalled.
	Offered float64
	// Rate is the rate at which the train ended, or its held part arrived, in bit/s of layer 2. Limiter is the rate of the limiter that its packets show, whatever
	// others' packets are between them; it is not known if they show none.
	Rate    float64
	Limiter probe.Estimate
	// Limited is set if the train ended slower than it was sent. Shared is set if others' packets may be what slowed it.
	Limited, Shared bool
	// Tokens is the bytes of a limited train that passed above the limiter's rate: what was in the bucket at its begin.
	Tokens float64
}

// Read returns what a train showed. capacity is that of the path in bit/s of layer 2. A train of another method used tokens, and shows nothing else.
func Read(s *probe.Sample, capacity float64) Passage {
	p := Passage{Sent: s.Bytes(), Again: s.Again, AgainPassed: s.UsedBefore()}
	n := len(s.Arrived)
	if n == 0 {
		return p
	}
	p.From, p.To = s.Arrived[0].At, s.Arrived[n-1].At
	p.Passed = s.ArrivedBytes()
	if !strings.HasPrefix(s.Purpose, purpose) {
		return p
	}
	p.Idle, p.Hold, p.Offered = s.Parts[0].Pause > 0, s.Purpose == holdPurpose, s.TailSendingRate()
	if p.Hold {
		parts := s.Split()
		s = &parts[len(parts)-1]
		p.Offered = float64(s.Parts[0].Rate)
		if n := len(s.Arrived); n > 0 {
			p.Held, p.HeldSeconds = unit.Bytes(n*s.Parts[0].Frame()), float64(s.Arrived[n-1].At-s.Arrived[0].At)/1e9
		}
	}
	r := tokenrate.Estimate(s, capacity)
	p.Rate, p.Limiter = s.TailRate(), r.Rate
	if r.Rate.AtLeast || r.Rate.Known() && r.Rate.Value > belowSent*p.Offered {
		p.Limiter = probe.NoEstimate("others' traffic hides it")
	}
	if p.Shared = r.Shared() || !p.Limiter.Known(); p.Shared && !p.Hold {
		p.Limited = len(s.Arrived) >= minPackets && p.Rate > 0 && p.Rate < sharedBelow*p.Offered
		return p
	}
	if !p.Hold {
		p.Rate = r.Rate.Value // a bucket may have lasted for a part of the second half
	}
	p.Limited = p.Rate > 0 && p.Rate < belowSent*p.Offered
	// No more passes than there was in the bucket and what was added. If an end stalled, the train shows the bucket no better.
	p.Tokens = math.Max(float64(p.Passed)-p.Rate/8e9*float64(p.To-p.From), 0)
	if b := r.Bucket; b.Known() {
		p.Tokens = math.Max(b.Value, p.Tokens)
	}
	return p
}
