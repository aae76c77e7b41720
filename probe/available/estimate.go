package available

import (
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/probe"
)

// Constants of the estimate, chosen by Headgate.
const (
	// blockPackets is the number of packets of a block. The interval follows from the
	// differences between blocks.
	blockPackets = 25
	// pieces is the factor of the differences between blocks. At 1 the interval held 95,
	// 92 and 93 % (300 paths each: 1 Gbit/s, suspended, other capacities), at 0.9 it held
	// 94, 82 and 86 % (120 paths each). At 0.95 it was wider than necessary: 93 % of
	// another 300 paths.
	pieces = 0.92
	// stampNoise is the error of two timestamps, in ns: each is within 1 us of the truth.
	stampNoise = 3e3

	// minBusy packets give a result. The measurement ends after enoughTrains trains if
	// the relative width of the interval is at most enough.
	minBusy      = 40
	enoughTrains = 4
	enough       = 0.03
	// Results whose slope over the sending rate is at least this large, and this many
	// standard deviations, are not from the known link: 1 % of the paths where it is
	// tight, 80 % of those where it is not.
	minFollows  = 0.3
	maxFollows  = 0.85
	followsSure = 1.7
	// A note is added above this fraction of lost packets and of coalesced packets.
	noteThreshold = 0.005
	grouped       = 0.1
	// policed is a loss without a queue that only a policer causes.
	policed = 0.1
	// The standard deviation of the link's rate, relative, if the rate was known and if
	// it was computed from the trains; and of the model, relative to the result.
	knownSlope = 0.02
	foundSlope = 0.35
	model      = 0.008
	// shapedModel is larger because the queues of other links at the begin of a window
	// count, too.
	shapedModel = 0.015

	z = 1.645 // 90 % interval of a normal distribution
)

// Estimate returns the result of all trains.
func (m HoldTrains) Estimate(samples []probe.Sample) Result {
	r := m.read(samples)
	return m.estimate(&r)
}

func (m HoldTrains) estimate(r *evaluation) (out Result) {
	if r.busy.packets < minBusy || len(r.blocks) < 2 {
		if low := m.lowerBound(r); r.shaped && low > 0 && r.lost <= noteThreshold*r.sent {
			low = min(low, r.rate) * (1 - shapedModel)
			out.Available = probe.Estimate{Value: low, Low: low, AtLeast: true}
			out.Notes = append(r.notes(), "budget was too small to empty the bucket")
			return out
		}
		because := fmt.Sprintf("tight link was busy for only %.0f packets", r.busy.packets)
		if r.lost > policed*r.sent {
			because += fmt.Sprintf(", and %.0f %% of all packets were lost: a limiter drops packets instead of queueing them", 100*r.lost/r.sent)
		}
		out.Available = probe.NoEstimate(because)
		return out
	}
	if !r.shaped && r.heldTrains >= 2 {
		out.Available = probe.NoEstimate(fmt.Sprintf("packets were held for up to %v, in %d of %d trains, by a limiter that releases them at intervals", r.held.Round(100*time.Microsecond), r.heldTrains, len(r.trains)))
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
	few := 0.
	if m.Gentle { // so few packets of others that their number varies
		few = math.Sqrt((r.rate - a) * 8 * (mtu + probe.Overhead) * 1e9 / r.busy.gap)
	}
	half := z * (1 + 1.5/n) * math.Sqrt(se*se+slope*slope+rest*rest+few*few) // approximates Student's t
	out.Available = probe.Estimate{Value: a, Low: max(a-half, 0), High: a + half}
	out.Notes = r.notes()
	if slope, off, sent := r.slopeOverRate(); !r.shaped && slope > max(minFollows, followsSure*off) {
		// With the rate of the tight link, the result would be the point where it no
		// longer follows the sending rate.
		slope = min(slope+2*off, maxFollows)
		out.Available.Low = max(min(a-half, (a-slope*sent)/(1-slope)-half), 0)
		out.Notes = append(out.Notes, "results follow the rate of the trains: a faster link than the known one is tight, and less bandwidth may be available")
	}
	return out
}

// notes returns warnings about the result.
func (r *evaluation) notes() (out []string) {
	if r.receiverStall > 0 {
		out = append(out, fmt.Sprintf("receiver stalled for up to %v; packets from that time are left out", r.receiverStall.Round(10*time.Microsecond)))
	}
	if r.waited > grouped*r.sent {
		out = append(out, "receiver coalesces interrupts: above 100 us the result may be a fifth too low")
	}
	if r.lost > noteThreshold*r.sent {
		out = append(out, fmt.Sprintf("%.1f %% of the packets were lost", 100*r.lost/r.sent))
	}
	return out
}

// slopeOverRate returns the slope of the results of single trains over their sending rate: 0 if
// the known link is tight, nearly 1 if another link is. off is the slope's standard
// deviation, sent the mean sending rate.
func (r *evaluation) slopeOverRate() (slope, off, sent float64) {
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
