package path_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
)

// TestBounds: where delays vary more than bursts last neither the capacity nor the available bandwidth can be estimated. Long trains show a bound of both, with the
// reason.
func TestBounds(t *testing.T) {
	const rate = 900e6
	p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{
		Rate: rate, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}, Jitter: link.Jitter{Amount: time.Millisecond},
	}}}
	bounds := 0
	for seed := range uint64(5) {
		n, m := sim.New(p, seed+1), path.Method{Parts: path.AllParts}
		a := m.Estimate(simtest.SendAll(1000, m.Next, func(_ int, train probe.Train) probe.Sample { return n.Send(train) }))
		if c := a.Capacity; !c.AtLeast || c.Because == "" || c.Value < rate/2 || c.Value > rate {
			t.Errorf("seed %d: the capacity is %+v", seed, c)
		}
		switch v := a.Available.Available; {
		case v.Known() && (!v.AtLeast || v.Because == "" || v.Value > rate):
			t.Errorf("seed %d: the available bandwidth is %+v", seed, v)
		case v.Known():
			bounds++
		}
	}
	if bounds == 0 {
		t.Error("there is no bound of the available bandwidth")
	}
}

// TestBoundsOfPolicer: a policer beside others' traffic, whose tokens they take, has no queue, and trains arrive at several rates. There are bounds of its rate and of
// the available bandwidth, for some bytes.
func TestBoundsOfPolicer(t *testing.T) {
	const rate, cross, bucket = 300e6, 100e6, 30e3
	p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{
		Rate: 1e9, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond},
		Bucket: &link.Bucket{Rate: rate, Size: bucket, Police: true}, Cross: []link.Cross{{Load: cross, Model: link.Poisson, Sizes: []int{1514}}},
	}}}
	tokens, available := 0, 0
	for seed := range uint64(10) {
		n, m := sim.New(p, seed+1), path.Method{Parts: path.AllParts}
		a := m.Estimate(simtest.SendAll(1000, m.Next, func(_ int, train probe.Train) probe.Sample { return n.Send(train) }))
		if r := a.TokenRate.Rate; r.Carried() {
			tokens++
			if r.Value < rate/2 || r.Value > rate || a.TokenRate.Held < bucket {
				t.Errorf("seed %d: the token rate is %+v for %v", seed, r, a.TokenRate.Held)
			}
		}
		if v := a.Available.Available; v.Carried() {
			available++
			if spent := float64(a.Available.Held) * (1 - 1.1*(rate-cross)/v.Value); v.Value < (rate-cross)/2 || spent > bucket {
				t.Errorf("seed %d: the available bandwidth is %+v for %v", seed, v, a.Available.Held)
			}
		}
	}
	if tokens == 0 || available == 0 {
		t.Errorf("there are %d bounds of the token rate and %d of the available bandwidth", tokens, available)
	}
}
