package capacity

import "math"

// limited reports whether packets from index from on arrive slower than those from index
// first on: whether the mode of runs of the same length is slower. Cross traffic does not
// have that effect, because it lengthens early and late runs alike.
func limited(all []burst, first, from, n int) bool {
	k := min(from-first, n-from, 4)
	if k < 2 {
		return true
	}
	before, after := gaps(all, first, from, k), gaps(all, from, n, k)
	if len(before) < minValues || len(after) < minValues {
		return true
	}
	a, b := modeOf(before, k), modeOf(after, k)
	return b.gap > slow*a.gap+modeSigmas*math.Hypot(a.error, b.error)
}

// bucket returns the number of packets that pass a limiter at once: those that have
// arrived by a time, less those that the rate of the limiter has passed until then.
func bucket(all []burst, from, n int) float64 {
	from = min(from+1, n-2)
	tail := gaps(all, from, n, n-from)
	if len(tail) < minValues {
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

// headStart detects a bucket that is too small, for its link, to show as faster packets:
// it shows only because the first packets arrive earlier than the rate of the rest
// allows. 0 means that there is none.
func headStart(all []burst, head mode, n int) float64 {
	if n <= 8 || head.count < 15 || head.gap > 2*timestampError {
		return 0
	}
	b := bucket(all, max(3, n/4), n)
	if b < 2 || (b-1)*head.gap < timestampError {
		return 0
	}
	return b
}
