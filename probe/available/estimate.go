package available

import (
	"fmt"
	"math"
	"time"

	"headgate/probe"
)

// Constants of the estimate, ours.
const (
	// blockPackets make a piece of a train: the pieces' differences are the interval's.
	blockPackets = 25
	// pieces is what the pieces' differences count for. At 1 the interval held 95, 92 and
	// 93 % (300 paths each: 1 Gbit/s, suspended, other capacities), at 0.9 it held 94, 82
	// and 86 % (120 paths each). At 0.95 it was wider than needed: 93 % of another 300.
	pieces = 0.92
	// stampNoise of two stamps, in ns: each is within 1 us of the truth.
	stampNoise = 3e3

	// leastBusy packets are an answer, and enoughTrains whose interval is no wider than
	// enough of it end the measurement.
	leastBusy    = 40
	enoughTrains = 4
	enough       = 0.03
	// Answers that follow the rate by so much, and by so many standard deviations, are
	// not the known link's: 1 % of the paths where it is, 80 % of those where it is not.
	followsLeast = 0.3
	followsMost  = 0.85
	followsSure  = 1.7
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

// Estimate is what all trains say together.
func (m Ours) Estimate(samples []probe.Sample) Result {
	r := m.read(samples)
	return m.estimate(&r)
}

func (m Ours) estimate(r *reading) (out Result) {
	if r.busy.packets < leastBusy || len(r.blocks) < 2 {
		if least := m.unemptied(r); r.shaped && least > 0 && r.lost <= noted*r.sent {
			least = min(least, r.rate) * (1 - shapedModel)
			out.Available = probe.Estimate{Value: least, Low: least, AtLeast: true}
			out.Notes = append(r.notes(), "the bucket was not empty after all that may be sent")
			return out
		}
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
	se := pieces * math.Sqrt(variance*n/(n-1)) / r.busy.gap * math.Sqrt(1-covered)
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
	if slope, off, sent := r.follows(); !r.shaped && slope > max(followsLeast, followsSure*off) {
		// With the tight link's rate instead of ours the answer would be where it no
		// longer follows what is sent.
		slope = min(slope+2*off, followsMost)
		out.Available.Low = max(min(a-half, (a-slope*sent)/(1-slope)-half), 0)
		out.Notes = append(out.Notes, "answers follow the rate of the trains: a faster link than the known one is tight, and less may be available")
	}
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

// follows is by how much what single trains say follows the rate at which they were
// sent: not at all, or nearly all the way if another link than the known one is tight.
// off is the slope's standard deviation, and sent the mean rate.
func (r *reading) follows() (slope, off, sent float64) {
	var w, x, y, xx, xy float64
	for _, t := range r.trains {
		if t.busy.gap > 0 && t.took > 0 {
			rate, says := t.bytes*8e9/t.took, t.busy.available(r.rate)
			w, x, y = w+t.busy.gap, x+t.busy.gap*rate, y+t.busy.gap*says
			xx, xy = xx+t.busy.gap*rate*rate, xy+t.busy.gap*rate*says
		}
	}
	vx := xx - x*x/w
	if !(vx > 0) {
		return 0, 1, 0
	}
	slope = (xy - x*y/w) / vx
	rest, n := 0.0, -2.0
	for _, t := range r.trains {
		if t.busy.gap > 0 && t.took > 0 {
			d := t.busy.available(r.rate) - y/w - slope*(t.bytes*8e9/t.took-x/w)
			rest, n = rest+t.busy.gap*d*d, n+1
		}
	}
	return slope, math.Sqrt(rest / max(n, 1) / vx), x / w
}
