package simtest

import (
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
)

// Fault is the effect of a real host or network on a sample, in place.
type Fault struct {
	Name string
	Do   func(s *probe.Sample, rng *rand.Rand)
	// Ruins is set if the fault may leave nothing to estimate from.
	Ruins bool
}

// Faults are the faults that a method must handle. A packet always keeps its
// number.
var Faults = []Fault{
	{Name: "5 % lost", Do: func(s *probe.Sample, rng *rand.Rand) {
		s.Arrived = slices.DeleteFunc(s.Arrived, func(probe.Arrival) bool { return rng.Float64() < 0.05 })
	}},
	{Name: "packets in a row dropped by the receiver", Do: func(s *probe.Sample, _ *rand.Rand) {
		n := len(s.Arrived)
		s.Arrived = slices.Delete(s.Arrived, n/2, n*6/10)
		s.Overflow = n*6/10 - n/2
	}},
	{Name: "1 % duplicated", Do: func(s *probe.Sample, rng *rand.Rand) {
		var out []probe.Arrival
		for _, a := range s.Arrived {
			out = append(out, a)
			if rng.Float64() < 0.01 {
				out = append(out, a)
			}
		}
		s.Arrived = out
	}},
	{Name: "1 % reordered", Do: func(s *probe.Sample, rng *rand.Rand) {
		for i := 3; i < len(s.Arrived); i++ {
			if rng.Float64() < 0.01 {
				a, b := &s.Arrived[i-3], &s.Arrived[i]
				a.Number, b.Number = b.Number, a.Number
			}
		}
	}},
	{Name: "the receiver's clock set back by 2 ms", Do: func(s *probe.Sample, _ *rand.Rand) { step(s, -2*time.Millisecond) }},
	{Name: "the receiver's clock set forward by 2 ms", Do: func(s *probe.Sample, _ *rand.Rand) { step(s, 2*time.Millisecond) }},
	{Name: "the receiver stalled for 5 ms", Do: func(s *probe.Sample, _ *rand.Rand) { stall(s, 5*time.Millisecond) }},
	{Name: "the receiver stalled for 11 ms", Do: func(s *probe.Sample, _ *rand.Rand) { stall(s, 11*time.Millisecond) }},
	{Name: "truncated", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) {
		s.Sent, s.Arrived = s.Sent[:len(s.Sent)*2/3], s.Arrived[:len(s.Arrived)/2]
	}},
	{Name: "one send time", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) { s.Sent = s.Sent[:1] }},
	{Name: "one arrival", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) { s.Arrived = s.Arrived[:1] }},
	{Name: "no arrivals", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) { s.Arrived = nil }},
	{Name: "no times", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) { s.Sent, s.Arrived = nil, nil }},
	{Name: "empty sample", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) { *s = probe.Sample{} }},
	{Name: "equal arrival times", Ruins: true, Do: func(s *probe.Sample, _ *rand.Rand) {
		for i := range s.Arrived {
			s.Arrived[i].At = s.Arrived[0].At
		}
	}},
	{Name: "numbers that were never sent", Do: func(s *probe.Sample, _ *rand.Rand) {
		at := s.Arrived[len(s.Arrived)/2].At
		s.Arrived = slices.Insert(s.Arrived, len(s.Arrived)/2, probe.Arrival{Number: 1 << 30, At: at}, probe.Arrival{Number: -1, At: at})
	}},
}

// step sets the receiver's clock half way.
func step(s *probe.Sample, by time.Duration) {
	for i := len(s.Arrived) / 2; i < len(s.Arrived); i++ {
		s.Arrived[i].At += int64(by)
	}
}

// stall delays the packets that arrive half way, and for some time after, to the end of
// that time.
func stall(s *probe.Sample, for_ time.Duration) {
	if len(s.Arrived) == 0 {
		return
	}
	from := s.Arrived[len(s.Arrived)/2].At
	for i := range s.Arrived {
		if a := &s.Arrived[i]; a.At >= from {
			a.At = max(a.At, from+int64(for_))
		}
	}
}
