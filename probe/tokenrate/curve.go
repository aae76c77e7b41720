package tokenrate

import (
	"math"
	"slices"

	"headgate/probe"
)

// curve is a train's arrival curve: how many bytes of layer 2 had come by when, the
// first packet at time 0. What hosts do to a sample is no longer in it: packets that
// came twice, clocks that were set, and times at which either end stood still.
type curve struct {
	at     []float64 // ns
	bytes  []float64
	sent   []float64 // ns of the sender's clock, from its first packet on
	number []int
	frame  float64
	// headless: it does not begin where the train does; cut: nor end there.
	headless, cut bool
}

func newCurve(s *probe.Sample, capacity float64) (c curve) {
	from, to := unbroken(s)
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
	c.mendSteps()
	c.mendStart(8e9 / capacity)
	return c
}

// mendStart begins the curve when its first packet should have come, if those behind it
// show that it was late: nothing overtakes it, and the link carries them no faster than
// byte ns each. A bucket would seem to hold what the token rate gives meanwhile.
func (c *curve) mendStart(byte float64) {
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

// Constants of a late start, ours: so many packets are soon over, lest a capacity that is
// a little wrong adds up; and by so many ns two stamps are never off.
const (
	startPackets = 16
	startLate    = 4000
)

// unbroken is the longest part of a train in which the sender did not stand still:
// a bucket fills while it does.
func unbroken(s *probe.Sample) (from, to int) {
	n := min(s.Count(), len(s.Sent))
	begin := 0
	for i := 1; i <= n; i++ {
		if i < n && s.Sent[i]-s.Sent[i-1] < standstill {
			continue
		}
		if i-begin > to-from {
			from, to = begin, i
		}
		begin = i
	}
	return from, to
}

// dropClumps leaves out packets that came closer together than the link can carry
// them after a long silence: the receiver stood still, and stamped them late.
func (c *curve) dropClumps(close float64) {
	keep := curve{frame: c.frame, headless: c.headless, cut: c.cut}
	for i := 0; i < len(c.at); {
		j := i
		if i == 0 || c.at[i]-c.at[i-1] > standstill/2 {
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

// mendSteps takes a clock's steps out of the times after them. A step back shows as
// one; one forward as a silence that no number of missing packets explains.
func (c *curve) mendSteps() {
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
		if gap := per[i-1] * size; gap < -standstill/20 || gap > standstill && per[i-1] > 30*middle {
			off += gap - middle*size
		}
		c.at[i] -= off
	}
}

// slopes is the middle of the rates over a quarter of a range each, in bit/s: what
// one silence does to a straight line through all does not reach it.
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

// places is what would have come had nothing been lost.
func (c curve) places() []float64 {
	out := make([]float64, len(c.number))
	for i, n := range c.number {
		out[i] = float64(n) * c.frame
	}
	return out
}

// lost is the part of a range of the curve that never came.
func (c curve) lost(from, to int) float64 {
	if to-from < 2 {
		return 0
	}
	low, high := slices.Min(c.number[from:to]), slices.Max(c.number[from:to])
	// Clumps that were left out did come.
	came := (c.bytes[to-1]-c.bytes[from])/c.frame + 1
	return math.Max(0, 1-came/float64(high-low+1))
}

// offered is the rate at which the sender sent from a place on, what was lost
// included.
func (c curve) offered(from int) float64 {
	n := len(c.sent) - 1
	if took := c.sent[n] - c.sent[from]; took > 0 {
		return float64(c.number[n]-c.number[from]) * c.frame * 8e9 / took
	}
	return math.Inf(1)
}
