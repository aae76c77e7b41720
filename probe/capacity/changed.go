package capacity

import "math"

// changed compares the modes of the earlier and the later bursts, or of two packet sizes.
// It returns both gaps, and ok if they differ.
func (f result) changed() (before, after float64, ok bool) {
	if f.other > 0 {
		return f.gap, f.other, true
	}
	for quarter := 1; quarter <= 3 && f.wide > 0; quarter++ {
		at := len(f.all) * quarter / 4
		early, late := gaps(f.all[:at], f.from, f.usable, f.k), gaps(f.all[at:], f.from, f.usable, f.k)
		if len(early) < minValues || len(late) < minValues {
			continue
		}
		a, b := modeOf(early, f.k), modeOf(late, f.k)
		apart := math.Abs(a.gap - b.gap)
		if min(a.count, b.count) >= 4 && apart > 2*modeSigmas*math.Hypot(a.error, b.error) && apart > changes*f.gap {
			return a.gap, b.gap, true
		}
	}
	return 0, 0, false
}
