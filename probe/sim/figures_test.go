package sim_test

import (
	"math"
	"testing"
	"time"

	"headgate/lab/link"
	"headgate/probe"
	"headgate/probe/capacity"
	"headgate/probe/sim"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// unboundedQueue is the length of a queue that loses no packets (2.5.1).
var unboundedQueue = link.Amount{Time: 10 * time.Second}

// pareto returns cross traffic with the seed's shape of 1.9 and packets of 1500 bytes.
func pareto(load float64) []link.Cross {
	return []link.Cross{{Load: unit.Rate(load), Model: link.Pareto, Sizes: []int{1500}}}
}

// figure27 is the network of figure 2.7: C is 400 Mbit/s, R is 100 Mbit/s; cross traffic
// is a fraction of each token rate.
func figure27(burst unit.Bytes, cross float64) (p sim.Path) {
	tokens := []unit.Rate{100, 900, 300, 500, 700}
	for i, c := range []unit.Rate{1200, 1000, 400, 600, 800} {
		r := tokens[i] * unit.Mbit
		p.Hops = append(p.Hops, link.Spec{
			Rate: c * unit.Mbit, Bucket: &link.Bucket{Rate: r, Size: burst}, Queue: unboundedQueue, Cross: pareto(cross * float64(r)),
		})
	}
	return p
}

// shares sends pairs back to back, and returns the fractions of their dispersion rates in
// the bins of some rates in Mbit/s.
func shares(p sim.Path, size int, at ...float64) (out []float64) {
	train := probe.Train{}
	for range 1000 {
		train.Parts = append(train.Parts, probe.Part{Count: 2, Size: size - probe.Overhead, Pause: 4 * time.Millisecond})
	}
	s := sim.New(p, 7).Send(train)
	var rates []float64
	for _, pair := range s.Split() {
		rates = append(rates, pair.DispersionRates()...)
	}
	h := probe.NewHistogram(rates, 10e6)
	for _, rate := range at {
		out = append(out, h.Share(rate*1e6))
	}
	return out
}

// Figure 2.8: with buckets of one packet, pairs show the token rate of 100 Mbit/s and
// never the capacity of 400 Mbit/s. With buckets of 100 packets it is the other way
// round.
func TestFigure28BucketSize(t *testing.T) {
	small, large := shares(figure27(1500, 0.5), 1500, 100, 400), shares(figure27(150_000, 0.5), 1500, 100, 400)
	t.Logf("shares of 100 and 400 Mbit/s: bucket of 1500 bytes %.3f, of 150,000 %.3f", small, large)
	if small[0] < 0.1 || small[1] > 0.005 || large[0] > 0.01 || large[1] < 0.1 {
		t.Error("want the token rate with small buckets, the capacity with large ones")
	}
}

// Figure 2.9: the capacity is the strongest mode with 30 % of cross traffic, and weak
// with 70 %.
func TestFigure29CrossTraffic(t *testing.T) {
	light, heavy := shares(figure27(1500, 0.3), 500, 400)[0], shares(figure27(1500, 0.7), 500, 400)[0]
	t.Logf("share of 400 Mbit/s: %.3f with 30 %% of cross traffic, %.3f with 70 %%", light, heavy)
	if light < 0.15 || heavy > light/4 {
		t.Error("want a strong mode with light cross traffic only")
	}
}

// Figure 2.10: from packets of 1000 bytes to 500, the share at the capacity grows from
// 0.2 to 11 %.
func TestFigure210PacketSize(t *testing.T) {
	large, small := shares(figure27(1500, 0.5), 1000, 400)[0], shares(figure27(1500, 0.5), 500, 400)[0]
	t.Logf("share of 400 Mbit/s: %.4f with packets of 1000 bytes, %.3f with 500", large, small)
	if large > 0.01 || small < 0.07 || small > 0.16 {
		t.Error("want 0.2 % and 11 %")
	}
}

// run lets a method send until it has enough samples.
func run(t *testing.T, p sim.Path, seed uint64, next func([]probe.Sample) (probe.Train, bool)) (samples []probe.Sample) {
	t.Helper()
	n := sim.New(p, seed)
	samples = sendAll(40, next, func(_ int, train probe.Train) probe.Sample { return n.Send(train) })
	if len(samples) == 40 {
		t.Fatal("the method does not terminate")
	}
	return samples
}

// sendAll lets a method send until it has enough samples, or most; i is the number of
// samples.
func sendAll[S, T any](most int, next func([]S) (T, bool), send func(i int, t T) S) (samples []S) {
	for len(samples) < most {
		t, ok := next(samples)
		if !ok {
			break
		}
		samples = append(samples, send(len(samples), t))
	}
	return samples
}

// section273 is five links of 2, 1, 2, 1 and 2 Gbit/s, with a fifth of cross traffic and
// shapers before some.
func section273(shapers map[int]link.Bucket) (p sim.Path) {
	for i, c := range []unit.Rate{2, 1, 2, 1, 2} {
		hop := link.Spec{Rate: c * unit.Gbit, Queue: unboundedQueue, Cross: pareto(0.2 * float64(c*unit.Gbit))}
		if b, ok := shapers[i]; ok {
			hop.Bucket, hop.Cross = &b, pareto(0.2*float64(b.Rate))
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// Figures 2.20 and 2.21: for any position of one shaper of 600 Mbit/s, and with one to
// four shapers, both methods of the seed find C and R within 2 %, and Ours finds R within
// 1 %.
//
// NarrowTokenRate is wrong if the only shaper is at one of the first two hops: the
// strongest mode of the histogram in its range is then another one. Ours returns the
// joint bound if cross traffic leaves no more of a later link than the token rate.
func TestFigures220And221(t *testing.T) {
	type path struct {
		name    string
		shapers map[int]link.Bucket
		token   float64
		short   bool
		hidden  bool
	}
	var paths []path
	for at := range 5 {
		paths = append(paths, path{"one shaper", map[int]link.Bucket{at: {Rate: 600 * unit.Mbit, Size: 2000}}, 600e6, at < 2, false})
	}
	all := []link.Bucket{{Rate: 800 * unit.Mbit, Size: 10_000}, {Rate: 600 * unit.Mbit, Size: 20_000}, {Rate: 400 * unit.Mbit, Size: 40_000}, {Rate: 200 * unit.Mbit, Size: 40_000}}
	for n := 1; n <= len(all); n++ {
		shapers := map[int]link.Bucket{}
		for i, b := range all[:n] {
			shapers[i+1] = b
		}
		paths = append(paths, path{"several shapers", shapers, float64(all[n-1].Rate), false, n == 1})
	}
	for i, p := range paths {
		network := section273(p.shapers)
		c := capacity.NarrowLink{Gap: 2 * time.Millisecond}
		got, err := c.Estimate(run(t, network, 1, c.Next))
		if err != nil || math.Abs(got/1e9-1) > 0.02 {
			t.Errorf("%s, %d: NarrowLinkCapacity returns %.1f Mbit/s, %v; want 1000", p.name, i, got/1e6, err)
		}
		token := tokenrate.NarrowTokenRate{Capacity: got}
		samples := run(t, network, 1, token.Next)
		seed, err := token.Estimate(samples)
		if !p.short && (err != nil || math.Abs(seed/p.token-1) > 0.02) {
			t.Errorf("%s, %d: NarrowTokenRate returns %.1f Mbit/s, %v; want %.0f", p.name, i, seed/1e6, err, p.token/1e6)
		}
		m := tokenrate.Ladder{Capacity: got}
		r := m.Estimate(run(t, network, 1, m.Next))
		ours := r.Rate
		if p.hidden && !ours.Known() && r.Joint != nil {
			continue
		}
		if ours.AtLeast && ours.Low > p.token || !ours.AtLeast && math.Abs(ours.Value/p.token-1) > 0.01 {
			t.Errorf("%s, %d: Ours returns %.1f Mbit/s, want %.0f", p.name, i, ours.Value/1e6, p.token/1e6)
		}
		t.Logf("%s, %d: C %.1f; R %.1f by Seed, %.1f by Ours; want 1000, %.0f", p.name, i, got/1e6, seed/1e6, ours.Value/1e6, p.token/1e6)
	}
}
