package tokenrate_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// section273 is five links of 2, 1, 2, 1 and 2 Gbit/s, with a fifth of cross traffic and
// shapers before some.
func section273(shapers map[int]link.Bucket) (p sim.Path) {
	for i, c := range []unit.Rate{2, 1, 2, 1, 2} {
		hop := link.Spec{Rate: c * unit.Gbit, Queue: simtest.UnboundedQueue, Cross: simtest.Pareto(0.2 * float64(c*unit.Gbit))}
		if b, ok := shapers[i]; ok {
			hop.Bucket, hop.Cross = &b, simtest.Pareto(0.2*float64(b.Rate))
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// Figures 2.20 and 2.21: for any position of one shaper of 600 Mbit/s, and with one to
// four shapers, both methods of the seed find C and R within 2 %, and Ladder finds R within
// 1 %.
//
// NarrowTokenRate is wrong if the only shaper is at one of the first two hops: the
// strongest mode of the histogram in its range is then another one. Ladder returns the
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
		got, err := c.Estimate(simtest.Run(t, network, 1, c.Next))
		if err != nil || math.Abs(got/1e9-1) > 0.02 {
			t.Errorf("%s, %d: NarrowLinkCapacity returns %.1f Mbit/s, %v; want 1000", p.name, i, got/1e6, err)
		}
		token := tokenrate.NarrowTokenRate{Capacity: got}
		samples := simtest.Run(t, network, 1, token.Next)
		seed, err := token.Estimate(samples)
		if !p.short && (err != nil || math.Abs(seed/p.token-1) > 0.02) {
			t.Errorf("%s, %d: NarrowTokenRate returns %.1f Mbit/s, %v; want %.0f", p.name, i, seed/1e6, err, p.token/1e6)
		}
		m := tokenrate.Ladder{Capacity: got}
		r := m.Estimate(simtest.Run(t, network, 1, m.Next))
		ours := r.Rate
		if p.hidden && !ours.Known() && r.Joint != nil {
			continue
		}
		if ours.AtLeast && ours.Low > p.token || !ours.AtLeast && math.Abs(ours.Value/p.token-1) > 0.01 {
			t.Errorf("%s, %d: Ladder returns %.1f Mbit/s, want %.0f", p.name, i, ours.Value/1e6, p.token/1e6)
		}
		t.Logf("%s, %d: C %.1f; R %.1f by NarrowTokenRate, %.1f by Ladder; want 1000, %.0f", p.name, i, got/1e6, seed/1e6, ours.Value/1e6, p.token/1e6)
	}
}
