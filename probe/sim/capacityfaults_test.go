package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate/lab/link"
	"headgate/probe"
	"headgate/probe/capacity"
	"headgate/probe/sim"
	"headgate/unit"
)

// testbed returns the path of figure 2.17: a link of 1 Gbit/s, and a shaper before or
// after it.
func testbed(rate unit.Rate, bucket unit.Bytes, after bool, cross float64) sim.Path {
	p := sim.Path{Noise: time.Microsecond, Skew: 2e-5}
	for i, c := range []unit.Rate{10, 1, 10} {
		hop := link.Spec{Rate: c * unit.Gbit, Delay: 100 * time.Microsecond, Queue: unboundedQueue}
		carries := hop.Rate
		if after && i == 2 || !after && i == 0 {
			hop.Bucket = &link.Bucket{Rate: rate, Size: bucket}
			carries = rate
		}
		if cross > 0 {
			hop.Cross = pareto(cross * float64(carries))
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// Figure 2.17: any token rate, bucket size and position of the shaper.
func TestFigure217Capacity(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, rate := range []unit.Rate{200, 400, 600} {
			for _, bucket := range []unit.Bytes{1600, 10_000, 100_000} {
				var m capacity.Bursts
				r := m.Estimate(run(t, testbed(rate*unit.Mbit, bucket, after, 0.2), 1, m.Next))
				c := r.Capacity
				t.Logf("R %d Mbit/s, %d bytes, after %t: %.0f Mbit/s (%.0f to %.0f), %d bytes passed at C", rate, bucket, after, c.Value/1e6, c.Low/1e6, c.High/1e6, r.Limit)
				if math.Abs(c.Value/1e9-1) > 0.03 {
					t.Errorf("%.1f Mbit/s, want 1000", c.Value/1e6)
				}
			}
		}
	}
}

// After faults of hosts the result is correct, or there is none.
func TestCapacityFaults(t *testing.T) {
	for _, f := range sampleFaults {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, every := range []bool{true, false} {
			m := capacity.Bursts{Budget: 1_000_000}
			n := sim.New(testbed(400*unit.Mbit, 10_000, true, 0.2), 1)
			samples := sendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
				s := n.Send(train)
				if every || i == 1 {
					f.do(&s, rng)
				}
				return s
			})
			c := m.Estimate(samples).Capacity
			t.Logf("%s: %.0f Mbit/s (%.0f to %.0f) %s", f.name, c.Value/1e6, c.Low/1e6, c.High/1e6, c.Reason)
			if c.Known() && !c.AtLeast && math.Abs(c.Value/1e9-1) > 0.05 || !c.Known() && !f.ruins {
				t.Error("want 1000 Mbit/s")
			}
		}
	}
}

// A path whose narrow link changes half way has no single capacity.
func TestCapacityChanges(t *testing.T) {
	for at := 1; at < 5; at++ {
		m := capacity.Bursts{}
		fast, slow := testbed(400*unit.Mbit, 10_000, true, 0.4), testbed(400*unit.Mbit, 10_000, true, 0.4)
		slow.Hops[1].Rate /= 2
		a, b := sim.New(fast, 1), sim.New(slow, 1)
		samples := sendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
			if i < at {
				return a.Send(train)
			}
			return b.Send(train)
		})
		c := m.Estimate(samples).Capacity
		if c.Known() && math.Abs(c.Value/1e9-1) > 0.03 && math.Abs(c.Value/0.5e9-1) > 0.03 {
			t.Error("want 1000 Mbit/s, 500 Mbit/s, or no result")
		}
		t.Logf("after %d of %d trains: %.0f (%.0f to %.0f) %s", at, len(samples), c.Value/1e6, c.Low/1e6, c.High/1e6, c.Reason)
	}
}
