package available_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// faults change samples before the method gets them.
var faults = map[string]func(rng *rand.Rand, k int, s *probe.Sample){
	"none": func(*rand.Rand, int, *probe.Sample) {},
	"5 % lost": func(rng *rand.Rand, _ int, s *probe.Sample) {
		s.Arrived = slices.DeleteFunc(s.Arrived, func(probe.Arrival) bool { return rng.Float64() < 0.05 })
	},
	"reordered": func(rng *rand.Rand, _ int, s *probe.Sample) {
		for i := 0; i+3 < len(s.Arrived); i++ {
			if rng.Float64() < 0.03 { // one packet arrives three places later
				late := s.Arrived[i]
				copy(s.Arrived[i:], s.Arrived[i+1:i+4])
				late.At = s.Arrived[i+2].At
				s.Arrived[i+3] = late
			}
		}
	},
	"duplicated": func(rng *rand.Rand, _ int, s *probe.Sample) {
		for i := len(s.Arrived) - 1; i >= 0; i-- {
			if rng.Float64() < 0.05 {
				s.Arrived = slices.Insert(s.Arrived, i+1, s.Arrived[i])
			}
		}
	},
	"clock steps": func(_ *rand.Rand, k int, s *probe.Sample) {
		step := int64(0)
		for i := range s.Arrived {
			if k%5 == 3 && i == len(s.Arrived)/2 {
				step = int64(3-k) * 1e6 // forwards and backwards
			}
			s.Arrived[i].At += step
		}
	},
	"every fifth train lost": func(_ *rand.Rand, k int, s *probe.Sample) {
		if k%5 == 1 {
			s.Arrived = nil
		}
	},
	"truncated": func(_ *rand.Rand, k int, s *probe.Sample) {
		if k%3 == 1 {
			s.Arrived = s.Arrived[:len(s.Arrived)/2]
		}
	},
	"receiver socket overflow": func(_ *rand.Rand, _ int, s *probe.Sample) {
		n := len(s.Arrived)
		s.Overflow = n / 10
		s.Arrived = slices.Delete(s.Arrived, n/2, n/2+n/10)
	},
}

// Whatever happens to the samples, trains are used and the result is correct or has a
// suitable interval: 500 of 1,000 Mbit/s.
func TestAvailableFaults(t *testing.T) {
	p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{Rate: unit.Gbit, Delay: time.Millisecond, Cross: []link.Cross{{Load: 500 * unit.Mbit, Sizes: []int{54, 590, 1514}}}}}}
	for name, spoil := range faults {
		for seed := uint64(1); seed <= 3; seed++ {
			rng := rand.New(rand.NewPCG(seed, 3))
			n := sim.New(p, seed)
			n.Record()
			m := available.HoldTrains{Capacity: 1e9}
			samples := simtest.SendAll(200, m.Next, func(i int, train probe.Train) probe.Sample {
				s := n.Send(train)
				spoil(rng, i, &s)
				return s
			})
			a, truth := m.Estimate(samples).Available, float64(n.Realised())
			t.Logf("%s: %.0f (%.0f to %.0f) for %.0f Mbit/s, %s", name, a.Value/1e6, a.Low/1e6, a.High/1e6, truth/1e6, a.Reason)
			if !a.Known() || a.Value < 0.9*truth || a.Value > 1.1*truth {
				t.Errorf("%s: error is more than a tenth", name)
			}
		}
	}
}

// A path that changes half way gives the average, or an interval that holds it.
func TestAvailableChanges(t *testing.T) {
	cross := func(mbit unit.Rate, from, to time.Duration) link.Cross {
		return link.Cross{Load: mbit * unit.Mbit, Sizes: []int{54, 590, 1514}, Start: from, Stop: to}
	}
	for seed := uint64(1); seed <= 5; seed++ {
		const at = 250 * time.Millisecond
		p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{Rate: unit.Gbit, Delay: time.Millisecond, Cross: []link.Cross{cross(300, 0, at), cross(700, at, 0)}}}}
		m := measure(loaded{Path: p, found: available.HoldTrains{Capacity: 1e9}}, seed)
		a := m.result.Available
		t.Logf("%.0f (%.0f to %.0f) for %.0f Mbit/s", a.Value/1e6, a.Low/1e6, a.High/1e6, m.truth/1e6)
		if !a.Known() || (a.Low > m.truth || a.High < m.truth) && (a.Value < 0.85*m.truth || a.Value > 1.15*m.truth) {
			t.Error("a confident wrong result")
		}
	}
}

// If a faster link than the known one is tight, the result is not confident: the interval
// holds the true value, or there is a note.
func TestAvailableTightNotNarrow(t *testing.T) {
	confident := 0
	for seed := uint64(1); seed <= 10; seed++ {
		p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{
			{Rate: 3 * unit.Gbit, Delay: time.Millisecond, Cross: []link.Cross{{Load: 2600 * unit.Mbit, Sizes: []int{54, 590, 1514}}}},
			{Rate: unit.Gbit, Delay: time.Millisecond},
		}}
		m := measure(loaded{Path: p, found: available.HoldTrains{Capacity: 1e9}}, seed)
		a := m.result.Available
		t.Logf("%.0f (%.0f to %.0f) for %.0f Mbit/s; %v", a.Value/1e6, a.Low/1e6, a.High/1e6, m.truth/1e6, m.result.Notes)
		if len(m.result.Notes) == 0 && (a.Low > m.truth || a.High < m.truth) {
			confident++
		}
	}
	if confident > 3 {
		t.Errorf("%d of 10 results are confident and wrong", confident)
	}
}

// Empty samples, and methods without known parameters, give no result, do not panic, and
// terminate.
func TestAvailableEmptySamples(t *testing.T) {
	empty := func(_ int, train probe.Train) probe.Sample {
		return probe.Sample{Train: train, Sent: make([]int64, train.Count())}
	}
	for _, m := range []available.HoldTrains{{}, {Capacity: 1e9}, {Capacity: 1e9, TokenRate: 3e8}, {TokenRate: 3e8, Bucket: 1e6}, {Capacity: 1e9, Budget: 10}} {
		samples := simtest.SendAll(2000, m.Next, empty)
		if len(samples) == 2000 || m.Estimate(samples).Available.Known() {
			t.Errorf("%+v: %d trains, %+v", m, len(samples), m.Estimate(samples))
		}
		m.Estimate([]probe.Sample{{}})
		m.Next([]probe.Sample{{}, {Sent: []int64{1}}, {Arrived: []probe.Arrival{{Number: 7, At: 1}}}})
	}
	var load available.Pathload
	samples := simtest.SendAll(100, load.Next, empty)
	if load.Estimate(samples).Available.Known() {
		t.Error("pathload returns a result for empty samples")
	}
	load.Estimate([]probe.Sample{{}})
	var ticks available.PacketTick
	var joint []probe.JointSample
	for len(joint) < 100 {
		j, ok := ticks.Next(joint)
		if !ok {
			break
		}
		s := probe.JointSample{Joint: j}
		for _, train := range j.Trains {
			s.Sent = append(s.Sent, make([]int64, train.Count()))
		}
		joint = append(joint, s)
	}
	if ticks.Estimate(joint).Available.Known() {
		t.Error("PacketTick returns a result for empty samples")
	}
	ticks.Estimate([]probe.JointSample{{}})
}

// A bucket that is larger than the budget: the result is a bound that holds.
func TestAvailableBucketNotEmptied(t *testing.T) {
	for seed := range uint64(10) {
		p := loaded{found: available.HoldTrains{Capacity: 1e9, TokenRate: 730e6, Bucket: 1.5e6}, answer: 5 * time.Millisecond}
		p.Hops = []link.Spec{{Rate: unit.Gbit, Bucket: &link.Bucket{Rate: 730 * unit.Mbit, Size: 1_500_000}, Cross: []link.Cross{{Load: 130 * unit.Mbit}}}}
		m := measure(p, seed)
		if e := m.result.Available; !e.Known() || !e.AtLeast || e.Value > m.truth*1.02 || e.Value < m.truth/2 {
			t.Errorf("seed %d: %+v, %.0f Mbit/s were available", seed, m.result, m.truth/1e6)
		}
	}
}
