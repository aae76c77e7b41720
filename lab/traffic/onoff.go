package traffic

import (
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/unit"
)

// OnOff is a source that is on and off by turns, for lengths of time that are
// drawn. Many of them with Pareto lengths (shape 1 to 2) add up to self-similar
// traffic (Willinger et al., Self-similarity through high-variability, 1997).
//
// It begins on with the probability that it is on at any time, the mean of On
// over that of both, so that many sources do not begin all at once.
type OnOff struct {
	// Rate while on, in layer-2 bits per second; Unlimited is as much as the socket
	// takes.
	Rate    unit.Rate
	On, Off Distribution[time.Duration]
}

// shortestTurn is the least mean of On and Off: shorter turns than a pacer's tick
// would not be seen by the path.
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
			return mistake(d.key, "the mean of this time is less than %v: write for example 200ms", shortestTurn)
		}
	}
	return nil
}

// mean is what is drawn in the middle, where no Max lowers it.
func (d Distribution[T]) mean() float64 {
	if d.Kind == Uniform {
		return (float64(d.Min) + float64(d.Max)) / 2
	}
	return float64(d.Mean)
}

// steps draws turn after turn.
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
		// A turn of at least 1 us: the times of steps rise.
		at += max(length.Draw(r), time.Microsecond)
		return s, at < largest
	}
}
