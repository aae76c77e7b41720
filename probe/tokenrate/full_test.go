package tokenrate

import (
	"testing"

	"headgate/probe"
)

// A bucket that a noisy curve calls empty, or less, has a size all the same: the
// search for it ends.
func TestFullOfNothing(t *testing.T) {
	trains := make([]probe.Sample, 2)
	for i := range trains {
		trains[i] = probe.Sample{Train: probe.Uniform("", 2, 1500, 0), Arrived: []probe.Arrival{{At: int64(i) * 1e6}, {Number: 1, At: int64(i)*1e6 + 1000}}}
	}
	for _, found := range []float64{-500, 0} {
		if b := full(trains, 1e6, found); b < found || b > found+2*1514 {
			t.Errorf("%.0f bytes found are a bucket of %.0f", found, b)
		}
	}
}
