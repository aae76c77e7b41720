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

// shaped is a path with one shaper.
type shaped struct {
	sim.Path
	rate, bucket, capacity, cross float64
}

// drawShaped draws one to three hops with a shaper before one of them, and cross traffic
// on each that is the same fraction of its rate.
func drawShaped(rng *rand.Rand) (p shaped) {
	log := func(from, to float64) float64 { return from * math.Pow(to/from, rng.Float64()) }
	p.rate, p.bucket = log(50e6, 2000e6), log(1600, 1e6)
	p.capacity = max(1e9, p.rate*(1.2+rng.Float64()*8))
	if p.cross = rng.Float64() * 0.6; p.cross > 0.5 {
		p.cross = 0 // for one path in six
	}
	p.Noise = time.Duration(500 + rng.Float64()*500)
	p.Skew = (rng.Float64()*2 - 1) * 5e-5
	hops := 1 + rng.IntN(3)
	at := rng.IntN(hops)
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(p.capacity), Delay: time.Millisecond, Queue: simtest.UnboundedQueue}
		if i != at {
			hop.Rate *= unit.Rate(1 + rng.IntN(3))
		}
		carries := float64(hop.Rate)
		if i == at {
			hop.Bucket = &link.Bucket{Rate: unit.Rate(p.rate), Size: unit.Bytes(p.bucket)}
			carries = p.rate
		}
		if p.cross > 0 {
			hop.Cross = simtest.Pareto(p.cross * carries)
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// On random paths the error of the token rate is within 1 % at p90, for at most 5 MB.
// Without cross traffic the error of the bucket size is within 2 % or a packet; with
// cross traffic the bucket size is never below the bound. Nine of ten intervals hold the
// true value.
func TestTokenRate(t *testing.T) {
	const paths = 200
	rng := rand.New(rand.NewPCG(1, 2))
	var off, width, sizeOff []float64
	rates, sizes, bounds, crossed := 0, 0, 0, 0
	for i := range paths {
		p := drawShaped(rng)
		// The capacity is an estimate, too.
		m := tokenrate.Ladder{Capacity: p.capacity * (1 + 0.01*rng.NormFloat64())}
		samples := simtest.Run(t, p.Path, uint64(i)+1, m.Next)
		sent := unit.Bytes(0)
		for j := range samples {
			sent += samples[j].Bytes()
		}
		if sent > 5_000_000 {
			t.Errorf("path %d: %d bytes were sent", i, sent)
		}
		r := m.Estimate(samples)
		if !r.Rate.Known() || r.Rate.AtLeast {
			t.Logf("path %d, R %.0f Mbit/s, cross %.2f: %+v", i, p.rate/1e6, p.cross, r.Rate)
			continue
		}
		off, width = append(off, math.Abs(r.Rate.Value/p.rate-1)), append(width, (r.Rate.High-r.Rate.Low)/p.rate)
		if r.Rate.Low <= p.rate && p.rate <= r.Rate.High {
			rates++
		}
		b := r.Bucket
		if b.Low <= p.bucket && (b.AtLeast || p.bucket <= b.High) {
			sizes++
		}
		tolerance := max(0.02*p.bucket, 1514)
		if p.cross == 0 {
			sizeOff = append(sizeOff, math.Abs(b.Value-p.bucket)/tolerance)
		} else if crossed++; b.Low <= p.bucket {
			bounds++
		}
		if b.Low > p.bucket+tolerance {
			t.Errorf("path %d: the lower bound of a bucket of %.0f bytes is %.0f", i, p.bucket, b.Low)
		}
	}
	part := func(n, of int) float64 { return float64(n) / float64(of) }
	t.Logf("token rate: error %.4f %% at the median, %.4f at p90; %.1f %% of intervals hold it, %.4f %% wide at the median; %d without a result",
		100*simtest.Quantile(off, 0.5), 100*simtest.Quantile(off, 0.9), 100*part(rates, len(off)), 100*simtest.Quantile(width, 0.5), paths-len(off))
	t.Logf("bucket size: error %.2f of the tolerance at p90 without cross traffic; with cross traffic %.1f %% of bounds hold; %.1f %% of all intervals hold it",
		simtest.Quantile(sizeOff, 0.9), 100*part(bounds, crossed), 100*part(sizes, len(off)))
	if simtest.Quantile(off, 0.9) > 0.01 || simtest.Quantile(sizeOff, 0.9) > 1 || part(rates, len(off)) < 0.85 || part(bounds, crossed) < 0.92 || paths-len(off) > paths/50 {
		t.Error("want 1 % at p90, the bucket size within its tolerance, and nine intervals in ten")
	}
}

// A path without a shaper, and a bucket that the budget does not empty, give the joint
// bound and no rate.
func TestNoLimitFound(t *testing.T) {
	for name, bucket := range map[string]*link.Bucket{"no shaper": nil, "bucket of 100 MB": {Rate: 300 * unit.Mbit, Size: 100_000_000}} {
		p := sim.Path{Hops: []link.Spec{{Rate: unit.Gbit, Bucket: bucket, Queue: simtest.UnboundedQueue}}}
		m := tokenrate.Ladder{Capacity: 1e9}
		r := m.Estimate(simtest.Run(t, p, 1, m.Next))
		if r.Rate.Known() || r.Bucket.Known() || r.Joint == nil || r.Joint.Bytes < 2_000_000 || r.Joint.Rate < 0.99e9 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A bucket of 100 MB is found with a budget that empties it.
func TestLargeBucket(t *testing.T) {
	const rate, bucket = 300e6, 100_000_000
	p := simtest.Testbed(rate, bucket, true, 0)
	m := tokenrate.Ladder{Capacity: 1e9, Budget: 500_000_000, Time: 10 * time.Second}
	r := m.Estimate(simtest.Run(t, p, 1, m.Next))
	t.Logf("%+v, %+v", r.Rate, r.Bucket)
	check(t, r, rate, bucket)
	if math.Abs(r.Bucket.Value/bucket-1) > 0.02 {
		t.Errorf("bucket size is %.0f", r.Bucket.Value)
	}
}

// A path whose token rate changes half way, within a train or between two, has no single
// rate. If the last train began after the change, its rate may be the result.
func TestTokenRateChanges(t *testing.T) {
	for _, cross := range []float64{0, 0.2} {
		for at := range 8 {
			a, b := sim.New(simtest.Testbed(300*unit.Mbit, 50_000, true, cross), 1), sim.New(simtest.Testbed(400*unit.Mbit, 50_000, true, cross), 1)
			m := tokenrate.Ladder{Capacity: 1e9}
			samples := simtest.SendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
				if i < at {
					return a.Send(train)
				}
				return b.Send(train)
			})
			r := m.Estimate(samples)
			t.Logf("after %d of %d trains, cross %.1f: %.2f %s, %.0f bytes", at, len(samples), cross, r.Rate.Value/1e6, r.Rate.Reason, r.Bucket.Value)
			if v := r.Rate.Value; r.Rate.Known() && !r.Rate.AtLeast && math.Abs(v/300e6-1) > 0.01 && math.Abs(v/400e6-1) > 0.01 {
				t.Error("want 300 or 400 Mbit/s")
			}
			if r.Bucket.Low > 52_000 {
				t.Errorf("the lower bound of a bucket of 50,000 bytes is %.0f", r.Bucket.Low)
			}
		}
	}
}

// A train without arrivals gives a reason.
func TestTokenRateWithoutArrivals(t *testing.T) {
	s := probe.Sample{Train: probe.Uniform("", 100, 1500, 0), Sent: make([]int64, 100)}
	if r := tokenrate.Estimate(&s, 1e9); r.Rate.Known() || r.Rate.Reason == "" {
		t.Errorf("%+v", r)
	}
}
