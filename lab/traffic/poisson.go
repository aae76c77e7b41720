package traffic

import (
	"math"
	"math/rand/v2"

	"headgate.dev/headgate/unit"
)

// Poisson is a source of datagrams, or of messages over one TCP connection, whose gaps are
// exponential: a Poisson process.
type Poisson struct {
	// Rate is the mean, in layer-2 bits per second.
	Rate unit.Rate
	// Size of a message, in bytes of payload, only for TCP; messages are sent back to back in whole
	// segments. The size of a datagram is the flow's Payload.
	Size Distribution[unit.Bytes] `json:",omitzero"`
}

// maxPoisson is the maximum rate, chosen by this project: every datagram is a wake-up and a system
// call, 5 to 8 us, and 1 Gbit/s of full frames is one every 12 us.
const maxPoisson = unit.Gbit

// Validate checks the rate.
func (p Poisson) Validate() error {
	if p.Rate == 0 || p.Rate > maxPoisson {
		return mistake("", "the rate of %v of a Poisson source is not above 0 and at most %v", p.Rate, maxPoisson)
	}
	return within("size", p.Size.Validate())
}

// arrivals is the source of datagrams or messages at Poisson times within [from, to).
type arrivals struct {
	Poisson
	rand *rand.Rand
	// payload of a full frame, for messages; 0 is one frame per arrival.
	payload  int
	from, to int64
	next     int64 // time of the next arrival; 0 before the first
}

func (a *arrivals) advance(now int64, frameBits float64) (bits float64) {
	if a.next == 0 {
		a.next = a.from + a.gap(frameBits)
	}
	for a.next <= now && a.next < a.to {
		bits += a.size(frameBits)
		a.next += a.gap(frameBits)
	}
	return bits
}

// size returns the size of the next arrival.
func (a *arrivals) size(frameBits float64) float64 {
	if a.payload == 0 {
		return frameBits
	}
	return float64(a.Size.Draw(a.rand)) / float64(a.payload) * frameBits
}

func (a *arrivals) gap(frameBits float64) int64 {
	if a.payload > 0 {
		frameBits *= a.Size.mean() / float64(a.payload)
	}
	return int64(math.Ceil(a.rand.ExpFloat64() * frameBits / float64(a.Rate) * 1e9))
}

func (a *arrivals) rate() unit.Rate { return a.Rate }

// due returns the next arrival, for any number of bits: bits come in frames.
func (a *arrivals) due(bits, _ float64) int64 {
	if a.next >= a.to {
		return never
	}
	return a.next
}
