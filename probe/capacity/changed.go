package capacity

import "math"

// changed gives the modes of the earlier and the later bursts, or of those of smaller
// and larger packets, if they are not the same.
func (f found) changed() (before, after float64, ok bool) {
	if f.other > 0 {
		return f.gap, f.other, true
	}
	for quarter := 1; quarter <= 3 && f.wide > 0; quarter++ {
		at := len(f.all) * quarter / 4
		early, late := gaps(f.all[:at], f.from, f.usable, f.k), gaps(f.all[at:], f.from, f.usable, f.k)
		if len(early) < least || len(late) < least {
			continue
		}
		a, b := modeOf(early, f.k), modeOf(late, f.k)
		apart := math.Abs(a.gap - b.gap)
		if min(a.count, b.count) >= 4 && apart > 2*sure*math.Hypot(a.error, b.error) && apart > changes*f.gap {
			return a.gap, b.gap, true
		}
	}
	return 0, 0, false
}
