package limiter_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// limiterFault changes the sample of a train.
type limiterFault struct {
	name string
	do   func(rng *rand.Rand, s *probe.Sample)
}

var limiterFaults = []limiterFault{
	{"reordering", func(rng *rand.Rand, s *probe.Sample) {
		for i := 1; i < len(s.Arrived); i++ {
			if rng.IntN(20) == 0 {
				s.Arrived[i].Number, s.Arrived[i-1].Number = s.Arrived[i-1].Number, s.Arrived[i].Number
			}
		}
	}},
	{"duplicates", func(rng *rand.Rand, s *probe.Sample) {
		for i := len(s.Arrived) - 1; i >= 0; i-- {
			if rng.IntN(20) == 0 {
				s.Arrived = slices.Insert(s.Arrived, i, s.Arrived[i])
			}
		}
	}},
	{"missing arrivals", func(rng *rand.Rand, s *probe.Sample) {
		s.Arrived = slices.DeleteFunc(s.Arrived, func(probe.Arrival) bool { return rng.IntN(10) == 0 })
	}},
	{"no arrivals", func(rng *rand.Rand, s *probe.Sample) {
		if rng.IntN(3) == 0 {
			s.Arrived = nil
		}
	}},
	{"clock set back", func(rng *rand.Rand, s *probe.Sample) {
		if n := len(s.Arrived); n > 0 && rng.IntN(2) == 0 {
			for i := rng.IntN(n); i < n; i++ {
				s.Arrived[i].At -= 50e6
			}
		}
	}},
	{"clock set forward", func(rng *rand.Rand, s *probe.Sample) {
		if n := len(s.Arrived); n > 0 && rng.IntN(2) == 0 {
			for i := rng.IntN(n); i < n; i++ {
				s.Arrived[i].At += 50e6
			}
		}
	}},
	{"truncated train", func(rng *rand.Rand, s *probe.Sample) {
		n := rng.IntN(len(s.Sent) + 1)
		s.Sent = s.Sent[:n]
		s.Arrived = s.Arrived[:rng.IntN(len(s.Arrived)+1)]
	}},
	{"numbers that were never sent", func(rng *rand.Rand, s *probe.Sample) {
		for i := range s.Arrived {
			if rng.IntN(50) == 0 {
				s.Arrived[i].Number = rng.IntN(4000) - 2000
			}
		}
	}},
	{"receiver socket overflow", func(rng *rand.Rand, s *probe.Sample) {
		if n := len(s.Arrived); n > 100 {
			s.Arrived = slices.DeleteFunc(s.Arrived, func(a probe.Arrival) bool { return a.Number > 80 && rng.IntN(3) > 0 })
			s.Overflow = n - len(s.Arrived)
		}
	}},
}

// Whatever the fault, the method terminates within its budget, and does not return a
// wrong class with confidence. If the fault leaves enough data, the class is correct.
func TestLimiterFaults(t *testing.T) {
	t.Parallel()
	for _, f := range limiterFaults {
		right, uncertain, wrong, all := 0, 0, 0, 0
		for _, class := range classes {
			for i := range 4 {
				// The same paths for every method.
				rng := rand.New(rand.NewPCG(7, uint64(i)))
				p := drawLimited(rng, class)
				m := limiter.Detector{}
				h := newHost(&p, uint64(i)+1)
				var samples []probe.Sample
				sent := unit.Bytes(0)
				for {
					train, ok := m.Next(samples)
					if !ok {
						break
					}
					if sent += train.Bytes(); sent > 5_000_000 || len(samples) > 40 {
						t.Fatalf("%s: %d trains, %v, on %v", f.name, len(samples), sent, &p)
					}
					s := h.Send(train)
					f.do(rng, &s)
					samples = append(samples, s)
				}
				r := m.Estimate(samples)
				all++
				switch {
				case r.Class == class:
					right++
				case r.Class == "" || r.Confidence < 0.6:
					uncertain++
				default:
					wrong++
					t.Logf("%s: %v: detected %s with confidence %.2f: %s", f.name, &p, r.Class, r.Confidence, r.Why)
				}
			}
		}
		t.Logf("%s: %d of %d correct, %d uncertain, %d wrong", f.name, right, all, uncertain, wrong)
		if wrong > all/12 {
			t.Errorf("%s: %d of %d are wrong with confidence", f.name, wrong, all)
		}
	}
}

// Empty samples give no result.
func TestLimiterEmptySamples(t *testing.T) {
	for _, samples := range [][]probe.Sample{nil, {{}}, {{Train: probe.Uniform("", 100, 1500, 0)}}} {
		if r := (limiter.Detector{}).Estimate(samples); r.Cannot == "" || r.Class != "" {
			t.Errorf("%+v", r)
		}
		if w := (limiter.Watch{}).Estimate(samples); w.Cannot == "" {
			t.Errorf("%+v", w)
		}
		if r, ok := (limiter.Seed{}).Estimate(samples); ok {
			t.Errorf("%+v", r)
		}
	}
}

// A token rate that changes half way makes the result doubtful.
func TestLimiterChanges(t *testing.T) {
	path := func(rate unit.Rate) sim.Path {
		return sim.Path{Work: time.Microsecond, Noise: 700 * time.Nanosecond, Hops: []link.Spec{
			{Rate: unit.Gbit, Queue: simtest.UnboundedQueue, Bucket: &link.Bucket{Rate: rate, Size: 20_000}},
		}}
	}
	m := limiter.Detector{}
	first, then := sim.New(path(300*unit.Mbit), 1), sim.New(path(150*unit.Mbit), 2)
	var samples []probe.Sample
	for _, count := range []int{100, 200, 400} {
		samples = append(samples, first.Send(probe.Uniform("", count, 1500, 0)))
	}
	for _, count := range []int{800} {
		s := then.Send(probe.Uniform("", count, 1500, 0))
		for i := range s.Arrived {
			s.Arrived[i].At += 1e9
		}
		samples = append(samples, s)
	}
	if r := m.Estimate(samples); r.Class != limiter.TBF || len(r.Doubts) == 0 || r.Confidence > 0.6 {
		t.Errorf("%+v", r)
	}
}

// The trains of the token rate alone show shapers, limiters by ticks and slow senders.
// They often do not show an end that sleeps or a policer, and then the confidence is low.
func TestLimiterTokenRateSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, class := range classes {
		right, uncertain, wrong := 0, 0, 0
		for i := range 15 {
			p := drawLimited(rng, class)
			token := tokenrate.Ladder{Capacity: p.capacity}
			h := newHost(&p, uint64(i)+1)
			var samples []probe.Sample
			for range 5 {
				train, ok := token.Next(samples)
				if !ok {
					break
				}
				samples = append(samples, h.Send(train))
			}
			switch r := (limiter.Detector{Capacity: p.capacity}).Estimate(samples); {
			case r.Class == class:
				right++
			case r.Class == "" || r.Confidence < 0.6:
				uncertain++
			default:
				wrong++
				t.Logf("%v: detected %s with confidence %.2f: %s", &p, r.Class, r.Confidence, r.Why)
			}
		}
		t.Logf("%s: %d correct, %d uncertain, %d wrong", class, right, uncertain, wrong)
		if minRight := map[limiter.Class]int{limiter.Scheduling: 6, limiter.Policer: 6}[class]; wrong > 2 || minRight == 0 && right < 14 || right < minRight {
			t.Errorf("%s: %d correct, %d wrong", class, right, wrong)
		}
	}
}
