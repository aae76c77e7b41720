package path_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// A bucket is larger than the default budget, behind a queue that holds only a part of a
// long burst. With a sufficient budget the token rate is found, for a shaper and for a
// policer; without it is not. The bucket size is never overestimated.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		spec   link.Spec
		budget unit.Bytes
		known  bool
	}{
		"5 MB":                 {link.Spec{Bucket: &link.Bucket{Rate: 500 * unit.Mbit, Size: 5_000_000}}, 50_000_000, true},
		"5 MB, policed":        {link.Spec{Bucket: &link.Bucket{Rate: 500 * unit.Mbit, Size: 5_000_000, Police: true}}, 50_000_000, true},
		"5 MB, default budget": {link.Spec{Bucket: &link.Bucket{Rate: 500 * unit.Mbit, Size: 5_000_000}}, path.Budget, false},
		"100 MB":               {link.Spec{Bucket: &link.Bucket{Rate: 500 * unit.Mbit, Size: 100_000_000}}, 50_000_000, false},
		"no shaper":            {link.Spec{}, 50_000_000, false},
		"20 kB":                {link.Spec{Bucket: &link.Bucket{Rate: 500 * unit.Mbit, Size: 20_000}}, 50_000_000, true},
	} {
		c.spec.Rate, c.spec.Queue = unit.Gbit, link.Amount{Time: 50 * time.Millisecond}
		m := path.Method{Parts: path.Parts{TokenRate: true}, KnownCapacity: unit.Gbit, Budget: c.budget}
		samples := simtest.Run(t, sim.Path{Hops: []link.Spec{c.spec}, Noise: 500 * time.Nanosecond}, 1, m.Next)
		sent := unit.Bytes(0)
		for i := range samples {
			sent += samples[i].Bytes()
		}
		r := m.Estimate(samples).TokenRate
		t.Logf("%s: %s sent, rate %+v, bucket %+v", name, sent, r.Rate, r.Bucket)
		if r.Rate.Known() != c.known || c.known && math.Abs(r.Rate.Value/5e8-1) > 0.005 {
			t.Errorf("%s: token rate %+v", name, r.Rate)
		}
		if !c.known && r.Joint == nil {
			t.Errorf("%s: no joint bound", name)
		}
		if c.known && r.Bucket.Low > float64(c.spec.Bucket.Size)*1.02 {
			t.Errorf("%s: bucket %+v", name, r.Bucket)
		}
		if sent > c.budget {
			t.Errorf("%s: %s were sent, budget %s", name, sent, c.budget)
		}
	}
}

// Trains that are sent again take their bytes from the budget, and what the first of them showed counts.
func TestSentAgain(t *testing.T) {
	spec := link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}}
	m := path.Method{Parts: path.AllParts, Budget: 18_000_000}
	again := unit.Bytes(0)
	samples := simtest.Run(t, sim.Path{Hops: []link.Spec{spec}, Noise: 500 * time.Nanosecond}, 1, func(samples []probe.Sample) (probe.Train, bool) {
		again = 0
		for i := range samples {
			again += samples[i].Bytes()
		}
		left, ok := m.Without(again)
		if !ok {
			return probe.Train{}, false
		}
		return left.Next(samples)
	})
	a := m.Estimate(samples)
	if sent := a.Bytes + again; sent > m.Budget+samples[len(samples)-1].Bytes() {
		t.Errorf("%s were sent, budget %s", sent, m.Budget)
	}
	if a.TokenRate == nil || a.TokenRate.Joint == nil || a.TokenRate.Joint.Rate < 8e8 {
		t.Errorf("token rate %+v", a.TokenRate.Rate)
	}
}

// A limiter is found with trains that are not faster than what the path is said to have, and no limiter shows at least about that rate.
func TestNominal(t *testing.T) {
	for name, limit := range map[string]unit.Rate{"shaper": 30 * unit.Mbit, "none": 0} {
		spec := link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}}
		if limit > 0 {
			spec.Bucket = &link.Bucket{Rate: limit, Size: 50_000}
		}
		m := path.Method{Parts: path.AllParts, Nominal: 50 * unit.Mbit, Budget: 20_000_000}
		samples := simtest.Run(t, sim.Path{Hops: []link.Spec{spec}, Noise: 500 * time.Nanosecond}, 1, m.Next)
		for i := range samples {
			s := &samples[i]
			if rate := s.SendingRate(); strings.HasPrefix(s.Purpose, "tokenrate/") && s.Count() > 10 && rate > 52e6 {
				t.Errorf("%s: train %s has %.1f Mbit/s", name, s.Purpose, rate/1e6)
			}
		}
		a := m.Estimate(samples)
		got := a.TokenRate.Rate
		if limit > 0 && math.Abs(got.Value/float64(limit)-1) > 0.01 {
			t.Errorf("%s: token rate %+v, want %v", name, got, limit)
		}
		if limit == 0 && (got.Known() || a.TokenRate.Joint == nil || a.TokenRate.Joint.Rate < 45e6) {
			t.Errorf("%s: token rate %+v, joint %+v: want at least about 50 Mbit/s", name, got, a.TokenRate.Joint)
		}
	}
}
