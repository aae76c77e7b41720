package traffic

import (
	"math"
	"math/rand/v2"

	"headgate/unit"
)

// Poisson is a source of datagrams whose gaps are exponential: a Poisson process.
type Poisson struct {
	// Rate is the mean, in layer-2 bits per second.
	Rate unit.Rate
}

// maxPoisson bounds the rate, ours: every datagram is a wake-up and a system
// call, 5 to 8 us, and 1 Gbit/s of full frames is one every 12 us.
const maxPoisson = unit.Gbit

// Validate checks the rate.
func (p Poisson) Validate() error {
	if p.Rate == 0 || p.Rate > maxPoisson {
		return mistake("", "a Poisson source's rate of %v is not above 0 and at most %v", p.Rate, maxPoisson)
	}
	return nil
}

// arrivals is the source of whole frames at Poisson times within [from, to).
type arrivals struct {
	mean unit.Rate
	rand *rand.Rand
	to   int64
	next int64 // when the next frame comes; 0 before the first is drawn
	from int64
}

func newArrivals(p Poisson, r *rand.Rand, from, to int64) *arrivals {
	return &arrivals{mean: p.Rate, rand: r, from: from, to: to}
}

func (a *arrivals) advance(now int64, frameBits float64) (bits float64) {
	if a.next == 0 {
		a.next = a.from + a.gap(frameBits)
	}
	for a.next <= now && a.next < a.to {
		bits += frameBits
		a.next += a.gap(frameBits)
	}
	return bits
}

func (a *arrivals) gap(frameBits float64) int64 {
	return int64(math.Ceil(a.rand.ExpFloat64() * frameBits / float64(a.mean) * 1e9))
}

func (a *arrivals) rate() unit.Rate { return a.mean }

// due is the next arrival, whatever is asked for: bits come by the frame.
func (a *arrivals) due(bits, _ float64) int64 {
	if a.next >= a.to {
		return never
	}
	return a.next
}
