package tokenrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of NarrowTokenRate, from the estimation seed.
const (
	// alpha: the drain train is sent at alpha * C (2.6).
	alpha = 7.0 / 8
	// drainCount is L_dt of the seed's simulations (2.6); it must exceed K.
	drainCount = 1000
	// trainCount is L_et, seedSize is s (2.6.2).
	trainCount = 1000
	seedSize   = 500
	mtu        = 1500
	// binWidth is the bin width of its histograms (2.5.2).
	binWidth = 10e6
)

// K returns how many packets of s bits pass a shaper at once before its bucket of sigma
// bits is empty. They arrive at the rate lambda, the token rate is r, and the link behind
// the shaper has the capacity c, all in bit/s (equation 2.1). K is infinite if lambda
// does not exceed r.
func K(sigma, s, r, c, lambda float64) float64 {
	into := min(lambda, c)
	if into <= r {
		return math.Inf(1)
	}
	return math.Floor((sigma/s - r/into) / (1 - r/into))
}

// NarrowTokenRate is the estimation seed's NarrowTokenRate (2.6.3). It needs the capacity of the
// path in bit/s of layer 2.
type NarrowTokenRate struct {
	Capacity float64
	// Drain is L_dt; 0 is 1000.
	Drain int
}

// Next returns the next train for the samples so far. ok is false if there are enough.
// The bucket refills for a round-trip time while the rate of the estimation train is
// computed, so that this train begins with a drain part of its own.
func (m NarrowTokenRate) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	drain := probe.Part{Count: cmp.Or(m.Drain, drainCount), Size: mtu, Rate: unit.Rate(alpha * m.Capacity)}
	switch len(samples) {
	case 0:
		return probe.Train{Purpose: "tokenrate/seed/drain", Parts: []probe.Part{drain}}, true
	case 1:
		lambda := (samples[0].SendingRate() + samples[0].ArrivalRate()) / 2
		estimation := probe.Part{Count: trainCount, Size: seedSize, Rate: unit.Rate(lambda)}
		return probe.Train{Purpose: "tokenrate/seed/estimation", Parts: []probe.Part{drain, estimation}}, true
	}
	return probe.Train{}, false
}

// Estimate returns, in bit/s of layer 2, the strongest mode of the dispersion rates of
// the estimation train between its average arrival rate and the sending rate of the drain
// train.
func (m NarrowTokenRate) Estimate(samples []probe.Sample) (float64, error) {
	if len(samples) < 2 {
		return 0, errors.New("NarrowTokenRate needs a drain train and an estimation train")
	}
	drain, train := &samples[0], samples[1].Split()[1]
	rates := train.DispersionRates()
	modes := probe.NewHistogram(rates, binWidth).Modes(rates, 0)
	from, to := train.ArrivalRate(), drain.SendingRate()
	best, ok := probe.Strongest(modes, from, to)
	if !ok {
		return 0, fmt.Errorf("no mode between %.0f and %.0f Mbit/s", from/1e6, to/1e6)
	}
	return best.At, nil
}
