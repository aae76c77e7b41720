package tokenrate

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// curve is the arrival curve of a train: the cumulative layer 2 bytes over time, with the
// first packet at time 0. Effects of the hosts are removed: duplicated packets, clocks
// that were set, and times at which an end stalled.
type curve struct {
	at     []float64 // ns
	bytes  []float64
	sent   []float64 // ns of the sender's clock since the first packet
	number []int
	frame  float64
	// headless is set if the begin of the train is missing, cut if the begin or the end
	// is.
	headless, cut bool
}

func newCurve(s *probe.Sample, capacity float64) (c curve) {
	from, to := longestWithoutStall(s)
	if from == to {
		return c
	}
	c.frame = float64(s.Parts[0].Frame())
	c.headless, c.cut = from > 0, from > 0 || to < s.Count()
	parts := s.PartOf()
	seen := make([]bool, len(parts))
	first, total := int64(0), 0.0
	for _, a := range s.Arrived {
		if a.Number < from || a.Number >= to || seen[a.Number] {
			continue
		}
		if total == 0 {
			first = a.At
		}
		seen[a.Number] = true
		total += float64(s.Parts[parts[a.Number]].Frame())
		c.at = append(c.at, float64(a.At-first))
		c.bytes = append(c.bytes, total)
		c.sent = append(c.sent, float64(s.Sent[a.Number]-s.Sent[from]))
		c.number = append(c.number, a.Number)
	}
	c.dropClumps(0.4 * c.frame * 8e9 / capacity)
	c.fixSteps()
	c.fixStart(8e9 / capacity)
	return c
}

// fixStart moves the first packet to the time at which it should have arrived, if the
// following ones show that it was late: none can overtake it, and the link takes byte ns
// for each byte. Otherwise the tokens of the delay would count as bucket size.
func (c *curve) fixStart(byte float64) {
	early := 0.0
	for i := range min(startPackets, len(c.at)) {
		early = min(early, c.at[i]-(c.bytes[i]-c.bytes[0])*byte)
	}
	if early > -startLate || c.headless {
		return
	}
	for i := 1; i < len(c.at); i++ {
		c.at[i] -= early
	}
}

// Constants of a late start. startPackets is small, so that an error of the capacity does
// not add up. startLate is more than the error of two timestamps, in ns.
const (
	startPackets = 16
	startLate    = 4000
)

// longestWithoutStall returns the longest part of a train in which the sender did not stall. A
// bucket fills while the sender stalls.
func longestWithoutStall(s *probe.Sample) (from, to int) {
	n := min(s.Count(), len(s.Sent))
	most := int64(stall)
	if len(s.Parts) > 0 { // a slow train has gaps of its own
		most = max(most, int64(silent*s.Parts[0].Gap()))
	}
	begin := 0
	for i := 1; i <= n; i++ {
		if i < n && s.Sent[i]-s.Sent[i-1] < most {
			continue
		}
		if i-begin > to-from {
			from, to = begin, i
		}
		begin = i
	}
	return from, to
}

// dropClumps removes packets that arrived closer together than the link can carry them,
// after a long silence: the receiver stalled and its timestamps are late.
func (c *curve) dropClumps(close float64) {
	keep := curve{frame: c.frame, headless: c.headless, cut: c.cut}
	for i := 0; i < len(c.at); {
		j := i
		if i == 0 || c.at[i]-c.at[i-1] > stall/2 {
			for j+1 < len(c.at) && c.at[j+1]-c.at[j] < close {
				j++
			}
		}
		if j-i >= 3 {
			keep.headless = keep.headless || i == 0
			i = j + 1
			continue
		}
		keep.at, keep.bytes = append(keep.at, c.at[i]), append(keep.bytes, c.bytes[i])
		keep.sent, keep.number = append(keep.sent, c.sent[i]), append(keep.number, c.number[i])
		i++
	}
	*c = keep
}

// fixSteps removes steps of the clock from the times after them. A step back is negative
// time; a step forward is a silence that no number of missing packets explains.
func (c *curve) fixSteps() {
	if len(c.at) < 2 {
		return
	}
	per := make([]float64, 0, len(c.at))
	for i := 1; i < len(c.at); i++ {
		per = append(per, (c.at[i]-c.at[i-1])/(c.bytes[i]-c.bytes[i-1]))
	}
	usual := slices.Clone(per)
	slices.Sort(usual)
	middle := math.Max(usual[len(usual)/2], 0)
	off := 0.0
	for i := 1; i < len(c.at); i++ {
		size := c.bytes[i] - c.bytes[i-1]
		if gap := per[i-1] * size; gap < -stall/20 || gap > stall && per[i-1] > 30*middle {
			off += gap - middle*size
		}
		c.at[i] -= off
	}
}

// slopes returns the median rate over windows of a quarter of a range, in bit/s. Unlike
// the slope of a regression line, it is robust against a single silence.
func (c curve) slopes(from, to int, bytes []float64) float64 {
	n := to - from
	k := n / 4
	rates := make([]float64, 0, n)
	for i := from; i+k < to; i++ {
		if took := c.at[i+k] - c.at[i]; took > 0 {
			rates = append(rates, (bytes[i+k]-bytes[i])*8e9/took)
		}
	}
	if len(rates) == 0 {
		return math.Inf(1)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// places returns the bytes that would have arrived without loss.
func (c curve) places() []float64 {
	out := make([]float64, len(c.number))
	for i, n := range c.number {
		out[i] = float64(n) * c.frame
	}
	return out
}

// lost returns the fraction of the packets in a range of the curve that were lost.
func (c curve) lost(from, to int) float64 {
	if to-from < 2 {
		return 0
	}
	low, high := slices.Min(c.number[from:to]), slices.Max(c.number[from:to])
	// The packets of removed clumps have arrived.
	came := (c.bytes[to-1]-c.bytes[from])/c.frame + 1
	return math.Max(0, 1-came/float64(high-low+1))
}

// offered returns the sending rate from index from on, including lost packets.
func (c curve) offered(from int) float64 {
	n := len(c.sent) - 1
	if took := c.sent[n] - c.sent[from]; took > 0 {
		return float64(c.number[n]-c.number[from]) * c.frame * 8e9 / took
	}
	return math.Inf(1)
}
