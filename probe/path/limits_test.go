package path

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// TestBoundsBelowLimits: a train that is shorter than the bucket of a limiter passes faster than the limit. It is no bound of the available bandwidth where the limit
// is known.
func TestBoundsBelowLimits(t *testing.T) {
	const rate = 100e6
	p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{
		Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 100 * time.Millisecond}, Bucket: &link.Bucket{Rate: rate, Size: 1_500_000},
	}}}
	n, m := sim.New(p, 1), Method{Parts: AllParts}
	samples := simtest.SendAll(1000, m.Next, func(_ int, train probe.Train) probe.Sample { return n.Send(train) })
	r := m.read(samples)
	if b := r.bounds(nil, math.Inf(1)); b.passed <= rate {
		t.Errorf("without a limit the bound is %.4g", b.passed)
	}
	if b := r.bounds(nil, rate); b.passed > rate {
		t.Errorf("beside a limit of %.4g the bound is %.4g", rate, b.passed)
	}
	if a := m.Estimate(samples); a.TokenRate.Rate.Known() && !a.TokenRate.Rate.AtLeast && a.Available.Available.Value > a.TokenRate.Rate.High*(1+agree) {
		t.Errorf("the available bandwidth is %+v beside a token rate of %+v", a.Available.Available, a.TokenRate.Rate)
	}
}
