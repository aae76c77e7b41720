package sim_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// figure27 is the network of figure 2.7: C is 400 Mbit/s, R is 100 Mbit/s; cross traffic
// is a fraction of each token rate.
func figure27(burst unit.Bytes, cross float64) (p sim.Path) {
	tokens := []unit.Rate{100, 900, 300, 500, 700}
	for i, c := range []unit.Rate{1200, 1000, 400, 600, 800} {
		r := tokens[i] * unit.Mbit
		p.Hops = append(p.Hops, link.Spec{
			Rate: c * unit.Mbit, Bucket: &link.Bucket{Rate: r, Size: burst}, Queue: simtest.UnboundedQueue, Cross: simtest.Pareto(cross * float64(r)),
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
