package link

import "headgate/unit"

// Available is what cross traffic left of a direction over [from, to) ns, exactly:
// the slowest rate less what virtual packets took of it. The log is what Take
// gave; own traffic in it is not counted, because available bandwidth is what
// one's own may have (estimation seed, section 5.2, equation 5.1).
func Available(s Spec, log []Result, from, to int64) unit.Rate {
	window := float64(to - from)
	capacity := float64(s.Slowest())
	taken := 0.0 // bits
	for i := range log {
		r := &log[i]
		if !r.Cross || r.Fate != Delivered {
			continue
		}
		bits := float64(r.Size) * 8
		began := r.Departed
		if s.Rate > 0 {
			began -= int64(bits * 1e9 / float64(s.Rate))
		}
		if r.Departed <= from || began >= to {
			continue
		}
		// Of a packet at an edge only the part inside counts.
		inside := 1.0
		if r.Departed > began {
			inside = float64(min(r.Departed, to)-max(began, from)) / float64(r.Departed-began)
		}
		taken += bits * inside
	}
	return unit.Rate(max(capacity-taken*1e9/window, 0))
}
