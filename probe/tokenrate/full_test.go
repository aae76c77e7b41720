package tokenrate

import (
	"testing"

	"headgate.dev/headgate/probe"
)

// full terminates, and returns a valid size, also for a bucket that a noisy curve shows
// as empty or negative.
func TestFullEmptyBucket(t *testing.T) {
	trains := make([]probe.Sample, 2)
	for i := range trains {
		trains[i] = probe.Sample{Train: probe.Uniform("", 2, 1500, 0), Arrived: []probe.Arrival{{At: int64(i) * 1e6}, {Number: 1, At: int64(i)*1e6 + 1000}}}
	}
	for _, found := range []float64{-500, 0} {
		if b := full(trains, 1e6, found); b < found || b > found+2*1514 {
			t.Errorf("full of %.0f bytes is %.0f", found, b)
		}
	}
}
