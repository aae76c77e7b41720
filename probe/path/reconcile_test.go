package path

import (
	"math"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/tokenrate"
)

// What contradicts another part of the answer does not leave it.
func TestReconcile(t *testing.T) {
	rate := func(v float64) probe.Estimate { return probe.Estimate{Value: v, Low: 0.99 * v, High: 1.01 * v} }
	capacity := rate(60e6)
	a := Answer{
		Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: rate(150e6), Bucket: rate(9000)},
		Limiter:   &limiter.Result{Class: limiter.TBF, Confidence: 0.99, Bucket: &limiter.Bucket{Rate: rate(150e6), Size: rate(9000)}},
		Available: &available.Result{Available: rate(100e6)},
	}
	a.reconcile(observed{})
	if a.TokenRate.Rate.Known() || !strings.Contains(a.TokenRate.Rate.Reason, "60.00Mbit") || a.TokenRate.Bucket.Known() {
		t.Errorf("a token rate above the capacity is %+v", a.TokenRate)
	}
	if a.Limiter.Cannot == "" || a.Limiter.Class != "" {
		t.Errorf("the limiter of such a token rate is %+v", a.Limiter)
	}
	if a.Available.Available.Known() {
		t.Errorf("an available bandwidth above the capacity is %+v", a.Available)
	}

	capacity = rate(1e9)
	a = Answer{
		Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: rate(400e6), Bucket: probe.Estimate{Value: -9000, Low: -9100, High: -8900}},
		Limiter:   &limiter.Result{Class: limiter.TBF, Confidence: 0.99, Bucket: &limiter.Bucket{Rate: rate(500e6), Size: rate(1)}},
		Available: &available.Result{Available: rate(960e6)},
	}
	a.reconcile(observed{})
	if !a.TokenRate.Rate.Known() || a.TokenRate.Bucket.Known() || a.Limiter.Bucket.Rate.Value != 400e6 || a.Available.Available.Known() {
		t.Errorf("a bucket below nothing, a limiter of another rate, and more available than the token rate: %+v %+v %+v", a.TokenRate, a.Limiter.Bucket, a.Available)
	}

	a = Answer{Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: rate(400e6), Bucket: rate(9000)}, Available: &available.Result{Available: rate(390e6)}}
	a.reconcile(observed{})
	if !a.TokenRate.Rate.Known() || !a.TokenRate.Bucket.Known() || !a.Available.Available.Known() {
		t.Errorf("an answer without contradictions is changed: %+v", a)
	}

	a.TokenRate.Rate = probe.NoEstimate("it was not confirmed")
	a.reconcile(observed{shown: 300e6})
	if a.Available.Available.Known() {
		t.Errorf("more available than the rate of a train: %+v", a.Available)
	}

	a = Answer{Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: rate(400e6), Bucket: rate(9000)}, Limiter: &limiter.Result{Class: limiter.None}, Available: &available.Result{Available: rate(390e6)}}
	a.reconcile(observed{fastest: 2e9, falls: "it fell"})
	if a.Capacity.Known() || a.Limiter.Class != limiter.TBF || !slices.Contains(a.Limiter.Doubts, "it fell") || a.Available.Available.Reason != "it fell" {
		t.Errorf("a capacity below the rate of a train, and a rate that fell: %+v", a)
	}

	capacity = probe.Estimate{Value: 3e9, Low: 3e9, AtLeast: true}
	a = Answer{Capacity: &capacity}
	a.reconcile(observed{fastest: 600e6, jitter: 2e6})
	if a.Capacity.Known() {
		t.Errorf("a capacity of bursts whose packets vary by 2 ms is %+v", a.Capacity)
	}

	known, bound := probe.Estimate{Value: 1e9, Low: 1e9, High: 1e9}, probe.Estimate{Value: 3e8, Low: 3e8, AtLeast: true}
	for _, c := range []struct {
		what string
		Answer
		observed
		token, available string
	}{
		{"an available bandwidth beside a bound of the capacity", Answer{Capacity: &bound, Available: &available.Result{Available: rate(390e6)}}, observed{}, "", "only a bound"},
		{"a rate of a limiter that may be others' traffic", Answer{
			Capacity: &known, TokenRate: &tokenrate.Result{Rate: rate(400e6), Bucket: rate(9000)}, Limiter: &limiter.Result{Class: limiter.Policer, Confidence: 0.55},
		}, observed{}, "others' traffic", ""},
		{"a bound of packets that overtook others", Answer{
			Capacity: &known, TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: 4e8, Low: 4e8, AtLeast: true}},
		}, observed{late: 0.3}, "30 %", ""},
		{"a rate of trains whose packets have one timestamp", Answer{
			Capacity: &probe.Estimate{Reason: "one timestamp"}, TokenRate: &tokenrate.Result{Rate: rate(400e6), Bucket: rate(9000)},
		}, observed{burst: math.Inf(1)}, "one timestamp", ""},
	} {
		c.reconcile(c.observed)
		if r := c.TokenRate; r != nil && (r.Rate.Known() || !strings.Contains(r.Rate.Reason, c.token)) {
			t.Errorf("%s is %+v", c.what, r.Rate)
		}
		if v := c.Available; v != nil && (v.Available.Known() || !strings.Contains(v.Available.Reason, c.available)) {
			t.Errorf("%s is %+v", c.what, v.Available)
		}
	}
}

// An answer says for how many bytes trains passed at its available bandwidth, and at a bound of the token rate.
func TestHold(t *testing.T) {
	train := func(packets int, rate float64) (s probe.Sample) {
		s.Train = probe.Uniform("test", packets, fullPacket, 0)
		for i := range packets {
			at := int64(float64(i) * packetTime(rate))
			s.Sent, s.Arrived = append(s.Sent, at), append(s.Arrived, probe.Arrival{Number: i, At: at})
		}
		return s
	}
	samples := []probe.Sample{train(300, 4e8), train(1000, 2e8), train(20, 9e8)}
	a := Answer{
		TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: 1.5e8, Low: 1.5e8, AtLeast: true}},
		Available: &available.Result{Available: probe.Estimate{Value: 3e8, Low: 2.9e8, High: 3.1e8}},
	}
	if a.hold(samples); a.TokenRate.Held != samples[1].Bytes() || a.Available.Held != samples[0].Bytes() {
		t.Errorf("the bound is held for %v, the available bandwidth for %v", a.TokenRate.Held, a.Available.Held)
	}
}
