package path_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// One answer has all parts, is consistent, and stays within its budget.
func TestPath(t *testing.T) {
	type want struct {
		name            string
		link            link.Spec
		class           limiter.Class
		rate, available float64 // 0: no estimate
	}
	const c = 1e9
	for _, w := range []want{
		{"a link", link.Spec{}, limiter.None, 0, c},
		{"a loaded link", link.Spec{Cross: simtest.Pareto(400e6)}, limiter.None, 0, 600e6},
		{"a shaper", link.Spec{Bucket: &link.Bucket{Rate: 300 * unit.Mbit, Size: 50_000}}, limiter.TBF, 300e6, 300e6},
		{"a loaded shaper", link.Spec{Bucket: &link.Bucket{Rate: 300 * unit.Mbit, Size: 50_000}, Cross: simtest.Pareto(100e6)}, limiter.TBF, 300e6, 200e6},
		{"tokens every 15 ms", link.Spec{Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: 200_000}}, limiter.Xen, 200_000 * 8 / 15e-3, 0},
	} {
		hop := w.link
		hop.Rate, hop.Delay, hop.Queue = unit.Gbit, 2*time.Millisecond, simtest.UnboundedQueue
		p := sim.Path{Hops: []link.Spec{hop}, Noise: 700 * time.Nanosecond, Work: 250 * time.Nanosecond}
		m := path.Method{Parts: path.AllParts}
		samples := simtest.Run(t, p, 3, m.Next)
		a := m.Estimate(samples)
		if a.Bytes > path.Budget {
			t.Errorf("%s: %s were sent, more than the budget", w.name, a.Bytes)
		}
		near := func(what string, e *probe.Estimate, truth, off float64) {
			t.Helper()
			if e == nil || !e.Known() || math.Abs(e.Value/truth-1) > off {
				t.Errorf("%s: %s is %+v, want %.4g", w.name, what, e, truth)
			}
		}
		near("capacity", a.Capacity, c, 0.03)
		if a.Limiter == nil || a.Limiter.Class != w.class {
			t.Errorf("%s: limiter is %+v", w.name, a.Limiter)
		}
		switch {
		case a.TokenRate == nil:
			t.Errorf("%s: no result for the token rate", w.name)
		case w.rate > 0:
			near("token rate", &a.TokenRate.Rate, w.rate, 0.01)
		case a.TokenRate.Rate.Known() && !a.TokenRate.Rate.AtLeast:
			t.Errorf("%s: token rate is %+v, want none", w.name, a.TokenRate.Rate)
		}
		if w.available > 0 {
			if a.Available == nil {
				t.Fatalf("%s: no result for the available bandwidth", w.name)
			}
			near("available bandwidth", &a.Available.Available, w.available, 0.15)
		}
		t.Logf("%s: capacity %.4g, token rate %.4g, %s, %s, %d trains", w.name, a.Capacity.Value, a.TokenRate.Rate.Value, a.Limiter.Class, a.Bytes, len(samples))
	}
}

// With the methods of the seed, pathload measures the available bandwidth: its range
// holds the true value if the capacity is known and the budget is large enough.
func TestPathSeed(t *testing.T) {
	hop := link.Spec{Rate: unit.Gbit, Delay: 2 * time.Millisecond, Queue: simtest.UnboundedQueue, Cross: simtest.Pareto(400e6)}
	m := path.Method{Parts: path.Parts{Available: true}, KnownCapacity: unit.Gbit, Seed: true, Budget: 200_000_000}
	a := m.Estimate(simtest.Run(t, sim.Path{Hops: []link.Spec{hop}, Noise: 700 * time.Nanosecond}, 3, m.Next))
	if a.Available == nil || !a.Available.Available.Known() || a.Available.Available.Low > 620e6 || a.Available.Available.High < 580e6 {
		t.Errorf("available bandwidth of 600 of 1000 Mbit/s is %+v", a.Available)
	}
}
