package traffic

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Quantiles are those of the sorted values, at most 0.8 % above; minimum, maximum and mean are exact.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Int64Range(0, 1e13), 1, 300).Draw(t, "ns")
		var h histogram
		var sum float64
		for _, ns := range v {
			h.add(ns)
			sum += float64(ns)
		}
		slices.Sort(v)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			want := v[max(int(math.Ceil(q*float64(len(v)))), 1)-1]
			if got := h.quantile(q); got < want || float64(got) > float64(want)*(1+1.0/128) {
				t.Fatalf("quantile %g is %d, want %d", q, got, want)
			}
		}
		got := h.times()
		if got.MinUs != float64(v[0])/1e3 || got.MaxUs != float64(v[len(v)-1])/1e3 || math.Abs(got.MeanUs-sum/float64(len(v))/1e3) > 1e-9*sum {
			t.Fatalf("%+v of %v", got, v)
		}
	})
}

// RFC 3550's jitter of datagrams whose transit times alternate by 160 ns converges to 160 ns; of
// constant transit times it is 0, whatever the offset of the clocks.
func TestJitter(t *testing.T) {
	var even, uneven jitter
	for i := range int64(1000) {
		even.arrived(i*1000, i*1000+1e18)
		uneven.arrived(i*1000, i*1000+1e18+i%2*160)
	}
	if even.us() != 0 || math.Abs(uneven.us()-0.16) > 1e-6 {
		t.Errorf("jitter %g and %g us, want 0 and 0.16", even.us(), uneven.us())
	}
	// One step: J = |D|/16.
	var one jitter
	one.arrived(0, 0)
	one.arrived(10, 1610)
	if one.us() != 0.1 {
		t.Errorf("jitter %g us, want 0.1", one.us())
	}
}
