package link

import (
	"math"
	"math/rand/v2"
	"time"
)

// source generates the packets of one Cross.
type source struct {
	Cross
	rng  *rand.Rand
	mean float64 // ns between packets
	next float64 // ns: arrival of the next packet, as a fraction, so that the load does not drift
	stop float64 // ns
}

func newSource(c Cross, seed, stream uint64, zero, now int64) *source {
	if len(c.Sizes) == 0 {
		c.Sizes = []int{FullFrame}
	}
	if c.Shape == 0 {
		c.Shape = DefaultShape
	}
	bytes := 0
	for _, s := range c.Sizes {
		bytes += s
	}
	s := &source{
		Cross: c, rng: rand.New(rand.NewPCG(seed, stream)), stop: math.Inf(1),
		mean: float64(bytes) / float64(len(c.Sizes)) * 8e9 / float64(c.Load),
	}
	after := func(d time.Duration) float64 { return float64(zero + int64(d)) }
	s.next = max(after(c.Start), float64(now))
	if c.Stop > 0 {
		s.stop = after(c.Stop)
	}
	s.step()
	return s
}

// step advances to the next packet.
func (s *source) step() {
	switch s.Model {
	case Constant:
		s.next += s.mean
	case Pareto:
		shortest := s.mean * (s.Shape - 1) / s.Shape
		s.next += shortest * math.Pow(1-s.rng.Float64(), -1/s.Shape)
	default:
		s.next += s.mean * s.rng.ExpFloat64()
	}
}

// at returns the arrival time of the next packet.
func (s *source) at() int64 {
	if s.next >= s.stop {
		return math.MaxInt64
	}
	return int64(math.Ceil(s.next))
}

func (s *source) packet() Packet {
	return Packet{Size: s.Sizes[s.rng.IntN(len(s.Sizes))], DSCP: s.DSCP}
}
