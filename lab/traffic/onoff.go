package traffic

import (
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/unit"
)

// OnOff is a source that is alternately on and off for random durations. Many of them with Pareto
// durations (shape 1 to 2) add up to self-similar traffic (Willinger et al., Self-similarity through
// high-variability, 1997).
//
// It starts on with its stationary probability, the mean of On over that of both, so that many sources
// do not start all at once.
type OnOff struct {
	// Rate while on, in layer-2 bits per second; Unlimited is as much as the socket takes.
	Rate    unit.Rate
	On, Off Distribution[time.Duration]
}

// shortestTurn is the minimum mean of On and Off: turns shorter than a pacer's tick would have no
// effect on the path.
const shortestTurn = tick

// Validate checks the rate and both distributions.
func (o OnOff) Validate() error {
	if o.Rate == 0 || o.Rate > Unlimited {
		return mistake("rate", "%v is not above 0 and at most %v: write for example 50Mbit, or unlimited", o.Rate, unit.MaxRate)
	}
	for _, d := range []struct {
		key string
		Distribution[time.Duration]
	}{{"on", o.On}, {"off", o.Off}} {
		if err := d.Validate(); err != nil {
			return within(d.key, err)
		}
		if d.mean() < float64(shortestTurn) {
			return mistake(d.key, "the mean is less than %v: write for example 200ms", shortestTurn)
		}
	}
	return nil
}

// mean returns the mean of the distribution, without the effect of Max.
func (d Distribution[T]) mean() float64 {
	if d.Kind == Uniform {
		return (float64(d.Min) + float64(d.Max)) / 2
	}
	return float64(d.Mean)
}

// steps returns the turns one after the other.
func (o OnOff) steps(r *rand.Rand) func() (Step, bool) {
	at := time.Duration(0)
	on := r.Float64() < o.On.mean()/(o.On.mean()+o.Off.mean())
	return func() (Step, bool) {
		s := Step{At: at}
		length := o.Off
		if on {
			s.Rate, length = o.Rate, o.On
		}
		on = !on
		// A turn is at least 1 us, so that the times of steps increase.
		at += max(length.Draw(r), time.Microsecond)
		return s, at < largest
	}
}
