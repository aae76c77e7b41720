package link

import (
	"cmp"
	"math"
	"slices"

	"headgate.dev/headgate/unit"
)

// Available returns the bandwidth that cross traffic leaves of a direction over [from, to) ns,
// exactly: the slowest rate minus what the virtual packets would have taken of it alone. Probe traffic
// may delay virtual packets or push them out of a full queue, but the available bandwidth does not
// increase by that (estimation dissertation, section 5.2, equation 5.1; docs/seeds.md). log has the results
// of Take. It ends at the last arrival that it has: packets that were still queued are not in it.
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
		// Of a packet at an edge only the part inside the interval counts.
		inside := 1.0
		if r.Departed > began {
			inside = float64(min(r.Departed, to)-max(began, from)) / float64(r.Departed-began)
		}
		taken += bits * inside
	}
	return unit.Rate(math.Max(float64(s.Slowest())-taken*1e9/float64(to-from), 0))
}

// alone replays the log's virtual packets through the same link without other traffic, and returns
// those that began before to.
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
	// RED is left out: its random numbers were drawn for other queue lengths.
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
