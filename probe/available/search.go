package available

import (
	"fmt"

	"headgate/probe"
	"headgate/unit"
)

// Constants of pathload's search, from its paper.
const (
	streams = 12  // N, of a fleet
	agree   = 0.7 // f: the part of them that decides
	// A fleet is given up, and its rate is too high, if one stream loses so much, or
	// too many of them lose some.
	muchLoss = 0.1
	someLoss = 0.03
	// width and grey are omega and chi, which the paper leaves to the user: parts of
	// the highest rate.
	width = 0.02
	grey  = 0.02
)

// fleet is what the streams of one rate say.
type fleet struct {
	rises, doesNot, lossy int
	lost                  bool // aborted
	size                  int
}

func (f *fleet) add(t trend, lost float64) {
	f.size++
	switch t {
	case rises:
		f.rises++
	case doesNot:
		f.doesNot++
	}
	if lost > someLoss {
		f.lossy++
	}
	f.lost = f.lost || lost > muchLoss || f.lossy > streams/2
}

// search is where pathload's search stands: the available bandwidth is between low
// and high, and varied over [greyLow, greyHigh] (section IV: rate adjustment).
type search struct {
	low, high         float64
	greyLow, greyHigh float64
	top               float64
	aborts, fleets    int
}

func (s *search) take(rate float64, f fleet) {
	s.fleets++
	switch {
	case f.lost:
		s.aborts++
		s.high = min(s.high, rate)
	case float64(f.rises) >= agree*float64(f.size):
		s.high = min(s.high, rate)
	case float64(f.doesNot) >= agree*float64(f.size):
		s.low = max(s.low, rate)
	case s.greyHigh == 0:
		s.greyLow, s.greyHigh = rate, rate
	default:
		s.greyLow, s.greyHigh = min(s.greyLow, rate), max(s.greyHigh, rate)
	}
	// A verdict that contradicts the grey region cuts it.
	if s.greyHigh > 0 {
		s.greyHigh, s.greyLow = min(s.greyHigh, s.high), max(s.greyLow, s.low)
		if s.greyLow > s.greyHigh {
			s.greyLow, s.greyHigh = 0, 0
		}
	}
}

// next is the rate of the next fleet; ok is false if the range is narrow enough.
func (s *search) next() (rate float64, ok bool) {
	switch {
	case s.high-s.low <= width*s.top:
		return 0, false
	case s.greyHigh == 0:
		return (s.low + s.high) / 2, true
	case s.high-s.greyHigh > grey*s.top:
		return (s.high + s.greyHigh) / 2, true
	case s.greyLow-s.low > grey*s.top:
		return (s.low + s.greyLow) / 2, true
	}
	return 0, false
}

// result is the range and its middle.
func (s *search) result() (out Result) {
	if s.aborts > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d fleets were given up, because they lost too much", s.aborts, s.fleets))
	}
	if s.low == 0 {
		out.Available = probe.CannotTell("no rate is low enough: " + unit.Rate(s.high).String() + " is too high as well")
		return out
	}
	out.Available = probe.Estimate{Value: (s.low + s.high) / 2, Low: s.low, High: s.high}
	return out
}
