package path_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// A limit that a train back to back does not show is found by one that is slower, or longer: behind a queue that is shorter than the bucket, and behind
// another limit.
func TestConfirm(t *testing.T) {
	hop := func(rate unit.Rate, size unit.Bytes, queue link.Amount) link.Spec {
		return link.Spec{Rate: unit.Gbit, Delay: 3 * time.Millisecond, Queue: queue, Bucket: &link.Bucket{Rate: rate, Size: size}}
	}
	for _, c := range []struct {
		name string
		hops []link.Spec
		rate float64
	}{
		{"a bucket behind a short queue", []link.Spec{hop(20*unit.Mbit, 500_000, link.Amount{Segments: 50})}, 20e6},
		{"a lower limit behind another", []link.Spec{hop(260*unit.Mbit, 30_000, simtest.UnboundedQueue), hop(250*unit.Mbit, 30_000, simtest.UnboundedQueue)}, 250e6},
		{"one limit", []link.Spec{hop(300*unit.Mbit, 50_000, simtest.UnboundedQueue)}, 300e6},
	} {
		m := path.Method{Parts: path.AllParts}
		a := m.Estimate(simtest.Run(t, sim.Path{Hops: c.hops, Noise: 700 * time.Nanosecond, Work: 250 * time.Nanosecond}, 3, m.Next))
		r := a.TokenRate
		if r == nil || !r.Rate.Known() || r.Rate.AtLeast || math.Abs(r.Rate.Value/c.rate-1) > 0.01 {
			t.Errorf("%s: the token rate is %+v, want %.4g", c.name, r, c.rate)
			continue
		}
		if r.Held < 100_000 || r.HeldSeconds < 0.02 {
			t.Errorf("%s: it was held for %v, %.3g s", c.name, r.Held, r.HeldSeconds)
		}
	}
}
