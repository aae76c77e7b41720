package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate/lab/link"
	"headgate/probe"
	"headgate/probe/sim"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// shaped is a path with one shaper.
type shaped struct {
	sim.Path
	rate, bucket, capacity, cross float64
}

// drawShaped draws one to three hops with a shaper before one of them, and as much
// cross traffic on each as a part of what it carries.
func drawShaped(rng *rand.Rand) (p shaped) {
	log := func(from, to float64) float64 { return from * math.Pow(to/from, rng.Float64()) }
	p.rate, p.bucket = log(50e6, 2000e6), log(1600, 1e6)
	p.capacity = max(1e9, p.rate*(1.2+rng.Float64()*8))
	if p.cross = rng.Float64() * 0.6; p.cross > 0.5 {
		p.cross = 0 // one path in six
	}
	p.Noise = 500 * time.Nanosecond
	hops := 1 + rng.IntN(3)
	at := rng.IntN(hops)
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(p.capacity), Delay: time.Millisecond, Queue: endless}
		if i != at {
			hop.Rate *= unit.Rate(1 + rng.IntN(3))
		}
		carries := float64(hop.Rate)
		if i == at {
			hop.Bucket = &link.Bucket{Rate: unit.Rate(p.rate), Size: unit.Bytes(p.bucket)}
			carries = p.rate
		}
		if p.cross > 0 {
			hop.Cross = pareto(p.cross * carries)
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// On drawn paths the token rate is within 1 % at p90, for 5 MB at the most; without
// cross traffic the bucket is within 2 % or a packet, and with it never smaller than
// what is said.
func TestTokenRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var off []float64
	for i := range 200 {
		p := drawShaped(rng)
		m := tokenrate.Ours{Capacity: p.capacity}
		samples := run(t, p.Path, uint64(i)+1, m.Next)
		sent := unit.Bytes(0)
		for j := range samples {
			sent += samples[j].Bytes()
		}
		if sent > 5_000_000 {
			t.Errorf("path %d: %d bytes were sent", i, sent)
		}
		r := m.Estimate(samples)
		if !r.Rate.Known() {
			t.Errorf("path %d, %+v: %s", i, p, r.Rate.Cannot)
			continue
		}
		off = append(off, math.Abs(r.Rate.Value/p.rate-1))
		b := r.Bucket
		if tolerance := max(0.02*p.bucket, 1514); p.cross == 0 && math.Abs(b.Value-p.bucket) > tolerance {
			t.Errorf("path %d: the bucket of %.0f bytes is called %.0f (R %.0f Mbit/s, C %.0f)", i, p.bucket, b.Value, p.rate/1e6, p.capacity/1e6)
		} else if b.Low > p.bucket+tolerance {
			t.Errorf("path %d: the bucket of %.0f bytes is called no smaller than %.0f", i, p.bucket, b.Low)
		}
	}
	slices.Sort(off)
	p90 := off[len(off)*9/10]
	t.Logf("off by %.4f %% at the median, %.4f at p90, %.3f at most", 100*off[len(off)/2], 100*p90, 100*off[len(off)-1])
	if p90 > 0.01 {
		t.Errorf("p90 is %.2f %%", 100*p90)
	}
}

// A path without a shaper, and a bucket that lasts longer than the budget, give the
// joint bound, and no rate.
func TestNoLimitMet(t *testing.T) {
	for name, bucket := range map[string]*link.Bucket{"no shaper": nil, "a bucket of 100 MB": {Rate: 300 * unit.Mbit, Size: 100_000_000}} {
		p := sim.Path{Hops: []link.Spec{{Rate: unit.Gbit, Bucket: bucket, Queue: endless}}}
		m := tokenrate.Ours{Capacity: 1e9}
		r := m.Estimate(run(t, p, 1, m.Next))
		if r.Rate.Known() || r.Bucket.Known() || r.Joint == nil || r.Joint.Bytes < 2_000_000 || r.Joint.Rate < 0.99e9 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// What never arrives is said.
func TestTokenRateWithoutArrivals(t *testing.T) {
	s := probe.Sample{Train: probe.Uniform("", 100, 1500, 0), Sent: make([]int64, 100)}
	if r := tokenrate.Estimate(&s, 1e9); r.Rate.Known() || r.Rate.Cannot == "" {
		t.Errorf("%+v", r)
	}
}
