package capacity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// Figure 2.17: any token rate, bucket size and position of the shaper.
func TestFigure217Capacity(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, rate := range []unit.Rate{200, 400, 600} {
			for _, bucket := range []unit.Bytes{1600, 10_000, 100_000} {
				var m capacity.Bursts
				r := m.Estimate(simtest.Run(t, simtest.Testbed(rate*unit.Mbit, bucket, after, 0.2), 1, m.Next))
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
	for _, f := range simtest.Faults {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, every := range []bool{true, false} {
			m := capacity.Bursts{Budget: 1_000_000}
			n := sim.New(simtest.Testbed(400*unit.Mbit, 10_000, true, 0.2), 1)
			samples := simtest.SendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
				s := n.Send(train)
				if every || i == 1 {
					f.Do(&s, rng)
				}
				return s
			})
			c := m.Estimate(samples).Capacity
			t.Logf("%s: %.0f Mbit/s (%.0f to %.0f) %s", f.Name, c.Value/1e6, c.Low/1e6, c.High/1e6, c.Reason)
			if c.Known() && !c.AtLeast && math.Abs(c.Value/1e9-1) > 0.05 || !c.Known() && !f.Ruins {
				t.Error("want 1000 Mbit/s")
			}
		}
	}
}

// A path whose narrow link changes half way has no single capacity.
func TestCapacityChanges(t *testing.T) {
	for at := 1; at < 5; at++ {
		m := capacity.Bursts{}
		fast, slow := simtest.Testbed(400*unit.Mbit, 10_000, true, 0.4), simtest.Testbed(400*unit.Mbit, 10_000, true, 0.4)
		slow.Hops[1].Rate /= 2
		a, b := sim.New(fast, 1), sim.New(slow, 1)
		samples := simtest.SendAll(40, m.Next, func(i int, train probe.Train) probe.Sample {
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
