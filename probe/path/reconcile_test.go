package path

import (
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
	if a.Capacity.Known() || a.Limiter.Cannot != "it fell" || a.Available.Available.Reason != "it fell" {
		t.Errorf("a capacity below the rate of a train, and a rate that fell: %+v", a)
	}

	capacity = probe.Estimate{Value: 3e9, Low: 3e9, AtLeast: true}
	a = Answer{Capacity: &capacity}
	a.reconcile(observed{fastest: 600e6, jitter: 2e6})
	if a.Capacity.Known() {
		t.Errorf("a capacity of bursts whose packets vary by 2 ms is %+v", a.Capacity)
	}
}
