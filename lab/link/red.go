package link

import (
	"math"
	"math/rand/v2"
)

// red is a RED with its state. Names are those of Floyd and Jacobson, figure 2.
type red struct {
	spec     RED
	segments bool // thresholds and the average are in segments
	profiles []profile
	class    [64]int // index of each code point's profile
	weight   float64
	typical  float64 // ns to send a full frame

	avg   float64
	qTime int64 // when the queue became empty
}

// profile is a Profile with its thresholds in the unit of the average.
type profile struct {
	min, max, probability float64
	count                 int // segments since the last mark, or -1
}

func newRED(s *Spec, old *red) *red {
	rate := s.Slowest()
	r := &red{
		spec: *s.RED, segments: s.RED.Min.Segments > 0, weight: s.RED.Weight,
		typical: FullFrame * 8e9 / float64(rate),
	}
	if r.weight == 0 {
		r.weight = DefaultWeight
	}
	add := func(p Profile) {
		r.profiles = append(r.profiles, profile{p.Min.count(rate), p.Max.count(rate), p.Probability, -1})
	}
	add(s.RED.Profile)
	for i, c := range s.RED.Classes {
		add(c.Profile)
		for _, d := range c.DSCP {
			r.class[d&63] = i + 1
		}
	}
	if old != nil && old.segments == r.segments {
		r.avg, r.qTime = old.avg, old.qTime
	}
	return r
}

// verdict reports whether an arrival that finds this queue is marked or dropped.
func (r *red) verdict(at int64, dscp uint8, bytes, segments int, rng *rand.Rand) (hit bool) {
	q := float64(bytes)
	if r.segments {
		q = float64(segments)
	}
	if segments > 0 {
		r.avg += r.weight * (q - r.avg)
	} else {
		// As if m small segments had arrived at an empty queue (section 11).
		m := float64(at-r.qTime) / r.typical
		r.avg *= math.Pow(1-r.weight, m)
		// The idle time until now has been counted.
		r.qTime = at
	}
	p := &r.profiles[r.class[dscp&63]]
	switch {
	case r.avg < p.min:
		p.count = -1
		return false
	case r.avg >= p.max:
		p.count = 0
		return true
	}
	p.count++
	pb := p.probability * (r.avg - p.min) / (p.max - p.min)
	pa := 1.0
	if left := 1 - float64(p.count)*pb; left > 0 {
		pa = pb / left
	}
	if rng.Float64() >= pa {
		return false
	}
	p.count = 0
	return true
}
