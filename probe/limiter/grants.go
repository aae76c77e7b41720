package limiter

import (
	"math"

	"headgate.dev/headgate/probe"
)

// changes returns the times at which two levels in a row agree on a new rate.
func changes(levels []Level) (out []Change) {
	if len(levels) == 0 {
		return nil
	}
	now := []float64{levels[0].Rate}
	for i := 1; i < len(levels); i++ {
		from, to := median(now), levels[i].Rate
		if math.Abs(to/from-1) < changed {
			now = append(now, to)
			continue
		}
		if i+1 < len(levels) && math.Abs(levels[i+1].Rate/to-1) < changed {
			out = append(out, Change{levels[i-1].At, levels[i].At, from, to})
			now = []float64{to}
		}
	}
	return out
}

// tokenGrants returns the bytes that trains received beyond the tokens in the bucket, which the
// rate refills between trains. Trains without a pause between them belong together.
func (e *evidence) tokenGrants(second func(*tail) float64) *TokenGrants {
	rate, size := 0.0, 0.0
	tokens, at := math.NaN(), 0.0
	group, groupFrom := 0.0, -1
	var times, earliest, sizes []float64
	for i := range e.tails {
		t := &e.tails[i]
		v := t.took
		from, to := v.at[0], v.at[len(v.at)-1]
		if e.emptiedBucket(t) {
			rate = t.served()
		}
		if rate == 0 {
			continue
		}
		got := t.emptied(rate)
		if math.IsNaN(tokens) {
			// The first train that empties the bucket shows its size.
			if e.emptiedBucket(t) {
				size = bucketSize(e.usages, from, rate, got)
				tokens, at = 0, to
			}
			continue
		}
		held := math.Min(size, tokens+rate*(from-at)/8e9)
		extra := got - held
		tokens, at = 0, to
		if !e.emptiedBucket(t) {
			tokens = math.Max(-extra, 0)
		}
		if groupFrom < 0 && extra > math.Max(minGrant*size, minGrantPackets*v.frame) {
			groupFrom, group = i, 0
		}
		if groupFrom >= 0 {
			group += math.Max(extra, 0)
			if e.emptiedBucket(t) {
				times, earliest = append(times, second(&e.tails[groupFrom])), append(earliest, second(&e.tails[groupFrom-1]))
				sizes = append(sizes, group)
				groupFrom = -1
			}
		}
	}
	if len(times) == 0 {
		return nil
	}
	g := &TokenGrants{At: times}
	_, sd := spread(sizes)
	m := median(sizes)
	g.Size = within(m, math.Max(z90*sd/math.Sqrt(float64(len(sizes))), 0.02*m+full))
	if n := len(times); n < 2 {
		g.Every = probe.NoEstimate("extra tokens were found only once")
	} else {
		// From the first to the last token grant: each was made since the previous train.
		steps := intervalsBetween(times)
		g.Every = probe.Estimate{Value: (times[n-1] - times[0]) / steps, Low: (earliest[n-1] - times[0]) / steps, High: (times[n-1] - earliest[0]) / steps}
	}
	return g
}

// intervalsBetween returns the number of intervals between the first and the last time.
// The smallest difference is one interval.
func intervalsBetween(times []float64) float64 {
	smallest := math.Inf(1)
	for i := 1; i < len(times); i++ {
		smallest = math.Min(smallest, times[i]-times[i-1])
	}
	return math.Max(math.Round((times[len(times)-1]-times[0])/smallest), 1)
}
