package tokenrate_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// After faults of hosts the token rate is correct, or there is none, and the bucket size
// is not overestimated.
func TestTokenRateFaults(t *testing.T) {
	const rate, bucket = 300 * unit.Mbit, 100_000
	faults := append([]simtest.Fault{{Name: "none", Do: func(*probe.Sample, *rand.Rand) {}}}, simtest.Faults...)
	for _, f := range faults {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, cross := range []float64{0, 0.3} {
			for _, every := range []bool{true, false} {
				n := sim.New(simtest.Testbed(rate, bucket, true, cross), 1)
				m := tokenrate.Ladder{Capacity: 1e9}
				samples := simtest.SendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
					s := n.Send(train)
					if every || i == 2 {
						f.Do(&s, rng)
					}
					return s
				})
				r := m.Estimate(samples)
				t.Logf("%s, cross %.1f: %.2f Mbit/s (%.2f to %.2f) %s, %.0f bytes (%.0f to %.0f) %s", f.Name, cross, r.Rate.Value/1e6, r.Rate.Low/1e6, r.Rate.High/1e6, r.Rate.Reason, r.Bucket.Value, r.Bucket.Low, r.Bucket.High, r.Bucket.Reason)
				check(t, r, float64(rate), bucket)
				if !r.Rate.Known() && !f.Ruins {
					t.Error("no token rate")
				}
			}
		}
	}
}

// check requires a correct rate, if it is not a bound, and no more than the true bucket
// size.
func check(t *testing.T, r tokenrate.Result, rate, bucket float64) {
	t.Helper()
	if r.Rate.Known() && !r.Rate.AtLeast && math.Abs(r.Rate.Value/rate-1) > 0.01 && r.Rate.High < rate || r.Rate.AtLeast && r.Rate.Low > rate*1.01 {
		t.Errorf("want %.0f Mbit/s", rate/1e6)
	}
	if r.Bucket.Known() && r.Bucket.Low > bucket+max(0.02*bucket, 1514) {
		t.Errorf("want %.0f bytes", bucket)
	}
}

// A policer drops what a shaper would queue: its rate is the rate of arrival. A policer
// whose bucket holds only one packet wastes tokens, and has no exact rate.
func TestPolicer(t *testing.T) {
	for _, rate := range []unit.Rate{100, 300, 500, 800} {
		for _, bucket := range []unit.Bytes{5000, 30_000, 300_000} {
			for _, cross := range []float64{0, 0.2} {
				p := simtest.Testbed(rate*unit.Mbit, bucket, true, cross)
				p.Hops[2].Bucket.Police = true
				m := tokenrate.Ladder{Capacity: 1e9}
				r := m.Estimate(simtest.Run(t, p, 1, m.Next))
				t.Logf("%d Mbit/s, %d bytes, cross %.1f: policed %t, %.2f (%.2f to %.2f) %s, %.0f bytes (%.0f to %.0f) %s", rate, bucket, cross, r.Policed, r.Rate.Value/1e6, r.Rate.Low/1e6, r.Rate.High/1e6, r.Rate.Reason, r.Bucket.Value, r.Bucket.Low, r.Bucket.High, r.Bucket.Reason)
				check(t, r, float64(rate*unit.Mbit), float64(bucket))
			}
		}
	}
}

// A shaper with a short queue drops much of a long train, and its rate is still the
// spacing of the rest. A path without a limiter that loses packets has no rate.
func TestTokenRateLosses(t *testing.T) {
	for _, cross := range []float64{0, 0.2} {
		p := simtest.Testbed(300*unit.Mbit, 20_000, true, cross)
		p.Hops[2].Queue = link.Amount{Bytes: 60_000}
		m := tokenrate.Ladder{Capacity: 1e9}
		r := m.Estimate(simtest.Run(t, p, 1, m.Next))
		t.Logf("short queue: %.2f (%.2f to %.2f) %s, %.0f bytes (%.0f to %.0f)", r.Rate.Value/1e6, r.Rate.Low/1e6, r.Rate.High/1e6, r.Rate.Reason, r.Bucket.Value, r.Bucket.Low, r.Bucket.High)
		check(t, r, 300e6, 20_000)

		p = simtest.Testbed(300*unit.Mbit, 20_000, true, cross)
		p.Hops[2].Bucket = nil
		p.Hops[1].Loss = link.Loss{Probability: 0.05}
		if r := m.Estimate(simtest.Run(t, p, 1, m.Next)); r.Rate.Known() && !r.Rate.AtLeast {
			t.Errorf("5 %% loss without a limiter: %+v", r.Rate)
		}
	}
}

// The bucket refills in the middle of a train if the sender stalls.
func TestTokenRateSleepingSender(t *testing.T) {
	for _, off := range []time.Duration{1, 11} {
		for _, cross := range []float64{0, 0.3} {
			p := simtest.Testbed(300*unit.Mbit, 100_000, true, cross)
			p.Hops[0].Rate = unit.Gbit // so that trains take long to send
			p.Sleep = link.Active{On: 7 * time.Millisecond, Off: off * time.Millisecond}
			m := tokenrate.Ladder{Capacity: 1e9}
			n := sim.New(p, 1)
			samples := simtest.SendAll(40, m.Next, func(_ int, train probe.Train) probe.Sample {
				train.Parts[0].Rate = 900 * unit.Mbit
				return n.Send(train)
			})
			r := m.Estimate(samples)
			t.Logf("sender asleep for %d ms, cross %.1f: %.2f (%.2f to %.2f) %s, %.0f bytes (%.0f to %.0f) %s", off, cross, r.Rate.Value/1e6, r.Rate.Low/1e6, r.Rate.High/1e6, r.Rate.Reason, r.Bucket.Value, r.Bucket.Low, r.Bucket.High, r.Bucket.Reason)
			check(t, r, 300e6, 100_000)
		}
	}
}

// Timestamps that are late by tens of microseconds, because of interrupt coalescing or of
// processors that sleep, hide the gaps between packets. Without cross traffic they do not
// hide the rate of many packets.
func TestTokenRateLateTimestamps(t *testing.T) {
	for _, rate := range []unit.Rate{80, 300, 800} {
		for _, cross := range []float64{0, 0.1, 0.3} {
			rng := rand.New(rand.NewPCG(uint64(rate), 4))
			n := sim.New(simtest.Testbed(rate*unit.Mbit, 50_000, true, cross), 1)
			m := tokenrate.Ladder{Capacity: 1e9}
			samples := simtest.SendAll(40, m.Next, func(_ int, train probe.Train) probe.Sample {
				s := n.Send(train)
				last := int64(0)
				for i := range s.Arrived {
					last = max(last, s.Arrived[i].At+rng.Int64N(40_000))
					s.Arrived[i].At = last
				}
				return s
			})
			r := m.Estimate(samples)
			t.Logf("%d Mbit/s, cross %.1f, %d trains: %.2f Mbit/s (%.2f to %.2f) %s", rate, cross, len(samples), r.Rate.Value/1e6, r.Rate.Low/1e6, r.Rate.High/1e6, r.Rate.Reason)
			check(t, r, float64(rate*unit.Mbit), 50_000)
			if cross == 0 && (!r.Rate.Known() || r.Rate.AtLeast || math.Abs(r.Rate.Value/float64(rate*unit.Mbit)-1) > 0.002) {
				t.Errorf("want %d Mbit/s", rate)
			}
		}
	}
}
