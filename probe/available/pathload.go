package available

import (
	"cmp"
	"math"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of pathload's streams, from the paper.
const (
	streamPackets = 100   // K
	minPeriod     = 100e3 // T_min, ns
	minSize       = 200   // bytes
	// silence is the pause between streams, in stream durations: streams use a tenth of
	// the path on average.
	silence = 9
)

// Pathload is pathload (Jain and Dovrolis, 2003; estimation seed, 5.3). It sends fleets
// of streams at one rate, and does a binary search by whether their delays rise.
type Pathload struct {
	// Highest is the highest rate that is tried, in bit/s of layer 2: the capacity, if it
	// is known; 0 is 1 Gbit/s.
	Highest float64
	// Budget bounds the bytes that are sent; 0 is 100 MB.
	Budget unit.Bytes
}

const pathloadBudget = 100_000_000

func (m Pathload) replay(samples []probe.Sample) search {
	top := cmp.Or(m.Highest, 1e9)
	s := search{high: top, top: top}
	for i := range samples {
		if len(samples[i].Parts) == 0 || samples[i].Count() > len(samples[i].Sent) {
			continue
		}
		var f fleet
		for _, stream := range samples[i].Split() {
			f.add(trendOf(owds(&stream)), float64(stream.Lost())/float64(stream.Count()))
		}
		s.take(float64(samples[i].Parts[0].Rate), f)
	}
	return s
}

// owds returns the one-way delays in sending order, except for a constant.
func owds(s *probe.Sample) (out []float64) {
	last := -1
	for _, a := range s.Arrived {
		if a.Number > last && a.Number < len(s.Sent) {
			out = append(out, float64(a.At-s.Sent[a.Number]))
			last = a.Number
		}
	}
	return out
}

// Next returns a fleet as one train.
func (m Pathload) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	s := m.replay(samples)
	rate, ok := s.next()
	if !ok {
		return t, false
	}
	left := cmp.Or(m.Budget, pathloadBudget)
	for i := range samples {
		left -= samples[i].Bytes()
	}
	// Use the shortest period for which packets are neither too small for accurate timing
	// nor too large for the path.
	frame := min(max(rate*minPeriod/8e9, minSize), mtu+probe.Overhead)
	p := probe.Part{Count: streamPackets, Size: int(frame) - probe.Overhead, Rate: unit.Rate(rate)}
	p.Pause = time.Duration(math.Ceil(silence * streamPackets * p.Gap()))
	t = probe.Train{Purpose: "available/pathload"}
	for range streams {
		t.Parts = append(t.Parts, p)
	}
	return t, t.Bytes() <= left
}

// Estimate returns the final range of the search, and its middle.
func (m Pathload) Estimate(samples []probe.Sample) Result {
	s := m.replay(samples)
	return s.result()
}
