package available

import (
	"fmt"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of pathload's search, from the paper.
const (
	streams = 12  // N, streams of a fleet
	agree   = 0.7 // f: the fraction of the streams that decides
	// A fleet is aborted, and its rate is too high, if one stream loses this fraction, or
	// if more than half of the streams lose some.
	muchLoss = 0.1
	someLoss = 0.03
	// width and grey are omega and chi, as fractions of the highest rate. The paper
	// leaves them to the user.
	width = 0.02
	grey  = 0.02
)

// fleet is the result of the streams of one rate.
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

// search is the state of pathload's search. The available bandwidth is between low and
// high, and varied over [greyLow, greyHigh] (section IV: rate adjustment).
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
	// A result that contradicts the grey region reduces it.
	if s.greyHigh > 0 {
		s.greyHigh, s.greyLow = min(s.greyHigh, s.high), max(s.greyLow, s.low)
		if s.greyLow > s.greyHigh {
			s.greyLow, s.greyHigh = 0, 0
		}
	}
}

// next returns the rate of the next fleet; ok is false if the range is narrow enough.
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

// result returns the range and its middle.
func (s *search) result() (out Result) {
	if s.aborts > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d fleets were aborted because of packet loss", s.aborts, s.fleets))
	}
	if s.low == 0 {
		out.Available = probe.NoEstimate("no rate is low enough: even " + unit.Rate(s.high).String() + " is too high")
		return out
	}
	out.Available = probe.Estimate{Value: (s.low + s.high) / 2, Low: s.low, High: s.high}
	return out
}
