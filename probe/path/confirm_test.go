package path_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
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
	police := func(rate unit.Rate, size unit.Bytes) link.Spec {
		h := hop(rate, size, link.Amount{Time: 200 * time.Millisecond})
		h.Bucket.Police = true
		return h
	}
	for _, c := range []struct {
		name string
		hops []link.Spec
		rate float64
	}{
		{"a bucket behind a short queue", []link.Spec{hop(20*unit.Mbit, 500_000, link.Amount{Segments: 50})}, 20e6},
		{"a lower limit behind another", []link.Spec{hop(260*unit.Mbit, 30_000, simtest.UnboundedQueue), hop(250*unit.Mbit, 30_000, simtest.UnboundedQueue)}, 250e6},
		{"a policer before the link, whose bucket may hold less or more", []link.Spec{police(300*unit.Mbit, 200_000)}, 300e6},
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

// TestConfirmPolicerShared: others' traffic takes tokens of a policer, more of them from a train that is little faster than the limit. The interval holds the
// rate all the same.
func TestConfirmPolicerShared(t *testing.T) {
	const rate = 10.6e6
	p := sim.Path{Noise: 700 * time.Nanosecond, Hops: []link.Spec{{
		Rate: 60 * unit.Mbit, Delay: 3 * time.Millisecond, Queue: link.Amount{Time: 300 * time.Millisecond}, Bucket: &link.Bucket{Rate: rate, Size: 84_000, Police: true},
		Cross: []link.Cross{{Load: 0.22 * rate, Model: link.Poisson, Sizes: []int{1514}}},
	}}}
	answers, wrong := 0, 0
	for seed := range uint64(20) {
		m := path.Method{Parts: path.Parts{Capacity: true, TokenRate: true, Limiter: true}}
		r := m.Estimate(simtest.Run(t, p, seed+1, m.Next)).TokenRate
		if r == nil || !r.Rate.Known() || r.Rate.AtLeast {
			continue
		}
		answers++
		if low, high := r.Rate.Widened(); rate > high || rate < low {
			wrong++
			t.Logf("seed %d: %.4g, from %.4g to %.4g", seed, r.Rate.Value, r.Rate.Low, r.Rate.High)
		}
	}
	t.Logf("%d answers, %d wrong", answers, wrong)
	if answers < 3 || wrong > answers/10 {
		t.Errorf("of %d answers %d are wrong", answers, wrong)
	}
}

// TestConfirmAfterPauses: a bucket fills again while the ends talk to each other between two trains, for longer over a long path. The train that confirms empties it.
func TestConfirmAfterPauses(t *testing.T) {
	const rate = 30e6
	p := sim.Path{Noise: 700 * time.Nanosecond, Work: 250 * time.Nanosecond, Hops: []link.Spec{{
		Rate: 50 * unit.Mbit, Delay: 10 * time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &link.Bucket{Rate: rate, Size: 200_000, Police: true},
	}}}
	m := path.Method{Parts: path.Parts{Capacity: true, TokenRate: true, Limiter: true}}
	n := sim.New(p, 1)
	samples := simtest.SendAll(40, m.Next, func(_ int, train probe.Train) probe.Sample {
		n.Idle(40 * time.Millisecond)
		return n.Send(train)
	})
	if r := m.Estimate(samples).TokenRate; r == nil || !r.Rate.Known() || r.Rate.AtLeast || math.Abs(r.Rate.Value/rate-1) > 0.01 {
		t.Errorf("the token rate is %+v, want %.4g", r, rate)
	}
}
