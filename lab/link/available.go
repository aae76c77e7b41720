package link

import (
	"cmp"
	"math"
	"slices"

	"headgate.dev/headgate/unit"
)

// Available is what cross traffic leaves of a direction over [from, to) ns,
// exactly: the slowest rate less what virtual packets would have taken of it alone.
// One's own traffic may delay them, or drive them out of a full queue; what one may
// have does not grow by that (estimation seed, section 5.2, equation 5.1). The log
// is what Take gave, and it ends where it knows of no later arrival: packets that
// still waited are not in it.
func Available(s Spec, log []Result, from, to int64) unit.Rate {
	taken := 0.0 // bits
	for _, r := range alone(s, log, to) {
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
	return unit.Rate(math.Max(float64(s.Slowest())-taken*1e9/float64(to-from), 0))
}

// alone plays the log's virtual packets again through the same link, with nothing
// beside them, and gives those that began before to.
func alone(s Spec, log []Result, to int64) (out []Result) {
	var arrivals []Result
	for _, r := range log {
		if r.Cross && r.Arrived < to {
			arrivals = append(arrivals, r)
		}
	}
	if len(arrivals) == 0 {
		return nil
	}
	slices.SortFunc(arrivals, func(a, b Result) int { return cmp.Compare(a.Number, b.Number) })
	// RED's dice were thrown for other queues than these.
	l := New(Spec{Rate: s.Rate, Queue: s.Queue, Bucket: s.Bucket, Xen: s.Xen}, 0, arrivals[0].Arrived)
	for _, r := range arrivals {
		l.serve(r.Arrived)
		l.admit(r.Arrived, Result{Packet: r.Packet, Number: r.Number, Arrived: r.Arrived, Cross: true})
	}
	l.serve(to)
	for l.gone.n > 0 {
		if r := l.gone.pop(); r.Fate == Delivered {
			out = append(out, r)
		}
	}
	return out
}
