package capacity

import "math"

// limited tells whether packets from one place on come slower than those from the
// first on:
// runs of the same length do, most of them. Others' packets lengthen some runs, early
// and late ones alike.
func limited(all []burst, first, from, n int) bool {
	k := min(from-first, n-from, 4)
	if k < 2 {
		return true
	}
	before, after := gaps(all, first, from, k), gaps(all, from, n, k)
	if len(before) < least || len(after) < least {
		return true
	}
	a, b := modeOf(before, k), modeOf(after, k)
	return b.gap > slow*a.gap+sure*math.Hypot(a.error, b.error)
}

// bucket is how many packets pass a limit at once: those that came by a time, less
// what its own rate let through until then.
func bucket(all []burst, from, n int) float64 {
	from = min(from+1, n-2)
	tail := gaps(all, from, n, n-from)
	if len(tail) < least {
		return 0
	}
	gap := modeOf(tail, n-from).gap
	var found []value
	for _, b := range all {
		for i := from; i < len(b.came); i++ {
			if t := b.came[i] - b.came[0]; !math.IsNaN(t) {
				found = append(found, value{float64(i+1) - t/gap, 1})
			}
		}
	}
	return middle(sorted(found)).gap
}

// headStart is a bucket that is too small, for its link, to be seen as packets that
// come faster: all that is left of it is that the first packets came earlier than
// the rate of the rest would have it. 0 is none.
func headStart(all []burst, head mode, n int) float64 {
	if n <= 8 || head.count < 15 || head.gap > 2*noise {
		return 0
	}
	b := bucket(all, max(3, n/4), n)
	if b < 2 || (b-1)*head.gap < noise {
		return 0
	}
	return b
}
