package capacity_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// narrow is a path with a narrow link.
type narrow struct {
	sim.Path
	capacity, rate, bucket, cross float64
}

// drawNarrow draws one to five hops, one of which is the narrow link. Two of three paths
// have a shaper before one of them (figure 2.17: token rates of 200, 400 and 600 of 1,000
// Mbit/s with buckets of 1.6, 10 and 100 KB, and random values between).
func drawNarrow(rng *rand.Rand) (p narrow) {
	log := func(from, to float64) float64 { return from * math.Pow(to/from, rng.Float64()) }
	p.capacity = log(50e6, 10e9)
	if p.cross = rng.Float64()*0.7 - 0.2; p.cross < 0 {
		p.cross = 0
	}
	p.Noise = time.Duration(500 + rng.Float64()*500)
	p.Skew = (rng.Float64()*2 - 1) * 5e-5
	hops := 1 + rng.IntN(5)
	at, shaper := rng.IntN(hops), rng.IntN(hops)
	if rng.IntN(3) > 0 {
		p.rate = p.capacity * []float64{0.2, 0.4, 0.6, 0.1 + 0.7*rng.Float64()}[rng.IntN(4)]
		p.bucket = []float64{1600, 10_000, 100_000, 1600 * (1 + rng.Float64()*2), log(1600, 1e6)}[rng.IntN(5)]
	}
	model := []link.Model{link.Pareto, link.Poisson}[rng.IntN(2)]
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(p.capacity), Delay: time.Millisecond, Queue: simtest.UnboundedQueue}
		if i != at {
			hop.Rate = unit.Rate(p.capacity * log(1.1, 10))
		}
		carries := float64(hop.Rate)
		if p.rate > 0 && i == shaper {
			hop.Bucket = &link.Bucket{Rate: unit.Rate(p.rate), Size: unit.Bytes(p.bucket)}
			carries = p.rate
		}
		if p.cross > 0 {
			hop.Cross = []link.Cross{{Load: unit.Rate(p.cross * carries), Model: model, Sizes: []int{1514}}}
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// On random paths the error of the capacity is within 3 % at p90, for at most 2 MB and 1
// s, and nine of ten intervals hold it.
func TestCapacity(t *testing.T) {
	const paths = 100
	rng := rand.New(rand.NewPCG(77, 78))
	var off, width, bytes, took []float64
	covered := 0
	for i := range paths {
		p := drawNarrow(rng)
		var m capacity.Bursts
		samples := simtest.Run(t, p.Path, uint64(i)+1, m.Next)
		last := samples[len(samples)-1]
		seconds := float64(last.Sent[len(last.Sent)-1]-samples[0].Sent[0]) / 1e9
		sent := unit.Bytes(0)
		for j := range samples {
			sent += samples[j].Bytes()
		}
		if sent > 2_000_000 || seconds > 1.1 {
			t.Errorf("path %d: %d bytes were sent in %.3f s", i, sent, seconds)
		}
		bytes, took = append(bytes, float64(sent)), append(took, seconds)
		c := m.Estimate(samples).Capacity
		if !c.Known() {
			t.Logf("path %d, C %.0f Mbit/s, %d hops, cross %.2f: %s", i, p.capacity/1e6, len(p.Hops), p.cross, c.Reason)
			continue
		}
		off, width = append(off, math.Abs(c.Value/p.capacity-1)), append(width, (c.High-c.Low)/p.capacity)
		if c.Low <= p.capacity && p.capacity <= c.High {
			covered++
		}
	}
	part := float64(covered) / float64(len(off))
	t.Logf("error %.2f %% at the median, %.2f at p90; %.1f %% of intervals hold it, %.2f %% wide at the median; %d of %d without a result; %.0f KB, %.2f s at p90",
		100*simtest.Quantile(off, 0.5), 100*simtest.Quantile(off, 0.9), 100*part, 100*simtest.Quantile(width, 0.5), paths-len(off), paths, simtest.Quantile(bytes, 0.9)/1e3, simtest.Quantile(took, 0.9))
	if simtest.Quantile(off, 0.9) > 0.03 || part < 0.85 || part > 0.98 || paths-len(off) > paths/25 {
		t.Error("want an error of 3 % at p90, and 85 to 95 % of intervals")
	}
}

// TestCapacityLoaded: where others' traffic is between the packets of nearly all bursts the mode is of slower bursts, and the interval is wide enough to hold the
// capacity.
func TestCapacityLoaded(t *testing.T) {
	const c = 4.3e9
	answers, wrong, low := 0, 0, 0
	for seed := range uint64(30) {
		load := func(part float64) []link.Cross {
			return []link.Cross{{Load: unit.Rate(part * c), Model: link.Pareto, Sizes: []int{64, 576, 1514}}}
		}
		p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{
			{Rate: 2 * c, Delay: time.Millisecond, Queue: simtest.UnboundedQueue, Cross: load(1)},
			{Rate: c, Delay: time.Millisecond, Queue: simtest.UnboundedQueue, Cross: load(0.5)},
		}}
		var m capacity.Bursts
		e := m.Estimate(simtest.Run(t, p, seed+1, m.Next)).Capacity
		if !e.Known() || e.AtLeast {
			continue
		}
		answers++
		if e.Value < 0.95*c {
			low++
		}
		if least, most := e.Widened(); most < c || least > c {
			wrong++
			t.Logf("seed %d: %.4g, from %.4g to %.4g", seed, e.Value, e.Low, e.High)
		}
	}
	t.Logf("%d answers, %d too low by more than 5 %%, %d outside the 99 %% interval", answers, low, wrong)
	if answers < 20 || low < 5 || wrong > 1 {
		t.Errorf("of %d answers, of which %d are low, %d are wrong", answers, low, wrong)
	}
}
