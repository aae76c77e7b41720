package sim_test

import (
	"math"
	"testing"

	"headgate/lab/link"
	"headgate/probe"
	"headgate/probe/compare"
	"headgate/probe/sim"
	"headgate/unit"
)

// group is the network of 3.7.1 in Mbit/s: A-R1, R1-R2, R2-R5 and B-R3, R3-R4, R4-R5.
// Cross traffic is a part of each link but the senders' own.
func group(a, b [3]unit.Rate, crossA, crossB float64) sim.Meeting {
	own := func(c [3]unit.Rate, cross float64) (p sim.Path) {
		for i, r := range c {
			hop := link.Spec{Rate: r * unit.Mbit, Queue: endless}
			if i > 0 && cross > 0 {
				hop.Cross = []link.Cross{{Load: unit.Rate(cross * float64(hop.Rate))}}
			}
			p.Hops = append(p.Hops, hop)
		}
		return p
	}
	return sim.Meeting{
		Own:    []sim.Path{own(a, crossA), own(b, crossB)},
		Shared: sim.Path{Hops: []link.Spec{{Rate: 10 * unit.Gbit}}, Noise: 500},
	}
}

// joint lets a method send until it has enough.
func joint(t *testing.T, m sim.Meeting, seed uint64, next func([]probe.JointSample) (probe.Joint, bool)) (samples []probe.JointSample) {
	t.Helper()
	n := sim.NewJoint(m, seed)
	for range 200 {
		j, ok := next(samples)
		if !ok {
			return samples
		}
		samples = append(samples, n.Send(j))
	}
	t.Fatal("the method does not end")
	return nil
}

// seedMean is the mean of the seed's ratios over 50 runs, as in 3.7.1, always given as
// 1 or more.
func seedMean(t *testing.T, m sim.Meeting) float64 {
	sum, n := 0.0, 0.0
	for i := range uint64(50) {
		s := compare.Seed{}
		if r := s.Estimate(joint(t, m, i+1, s.Next)).Ratio; r.Known() {
			sum += math.Max(r.Value, 1/r.Value)
			n++
		}
	}
	return sum / n
}

func TestFigure323(t *testing.T) {
	a := [3]unit.Rate{500, 200, 1000}
	for _, b := range []unit.Rate{400, 600, 800, 1000, 1200, 1400, 1600} {
		t.Logf("ratio %v: %.3f", float64(b)/200, seedMean(t, group(a, [3]unit.Rate{1600, b, 10_000}, 0.3, 0.3)))
	}
	for _, b := range []unit.Rate{200, 240, 300, 360, 400} {
		t.Logf("ratio %v: %.3f", float64(b)/200, seedMean(t, group(a, [3]unit.Rate{1000, b, 1000}, 0.3, 0.3)))
	}
}

func TestFigure324(t *testing.T) {
	a, b := [3]unit.Rate{500, 200, 1000}, [3]unit.Rate{1000, 400, 1000}
	for _, cross := range []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6} {
		t.Logf("%.1f on a: %.3f, on b: %.3f", cross, seedMean(t, group(a, b, cross, 0.3)), seedMean(t, group(a, b, 0.3, cross)))
	}
}
