package simtest

import (
	"slices"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
)

// maxTrains is more trains than any method sends over one path.
const maxTrains = 40

// Run lets a method send over a path until it has enough samples.
func Run(t testing.TB, p sim.Path, seed uint64, next func([]probe.Sample) (probe.Train, bool)) (samples []probe.Sample) {
	t.Helper()
	n := sim.New(p, seed)
	samples = SendAll(maxTrains, next, func(_ int, train probe.Train) probe.Sample { return n.Send(train) })
	if len(samples) == maxTrains {
		t.Fatal("the method does not terminate")
	}
	return samples
}

// SendAll lets a method send until it has enough samples, or maxSamples; i is the number of
// samples.
func SendAll[S, T any](maxSamples int, next func([]S) (T, bool), send func(i int, t T) S) (samples []S) {
	for len(samples) < maxSamples {
		t, ok := next(samples)
		if !ok {
			break
		}
		samples = append(samples, send(len(samples), t))
	}
	return samples
}

// Quantile returns the q-quantile of values, and sorts them.
func Quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(float64(len(values)-1)*q)]
}
