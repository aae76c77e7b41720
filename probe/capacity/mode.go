package capacity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// value is a gap with its weight.
type value struct{ gap, weight float64 }

// mode is the window of +-wide with the most weight, or with wide 0 the median.
type mode struct {
	gap  float64
	wide float64
	// count is the equivalent number of values of equal weight, error the standard error.
	count, error float64
}

// sorted sorts values in place and returns them.
func sorted(values []value) []value {
	slices.SortFunc(values, func(a, b value) int { return cmp.Compare(a.gap, b.gap) })
	return values
}

// densest finds the mode of sorted values, in a window that is centred on its own mean.
func densest(values []value, wide float64) (m mode) {
	if wide == 0 {
		return middle(values)
	}
	best, sum, end := 0.0, 0.0, 0
	for _, v := range values {
		for end < len(values) && values[end].gap <= v.gap+2*wide {
			sum += values[end].weight
			end++
		}
		if sum > best {
			best, m.gap = sum, v.gap+wide
		}
		sum -= v.weight
	}
	for range 4 {
		from, to := reach(values, m.gap-wide), reach(values, m.gap+wide)
		if from == to {
			break
		}
		m = mean(values[from:to])
	}
	m.wide = wide
	return m
}

// reach returns how many of the sorted values are below a gap.
func reach(values []value, gap float64) int {
	i, _ := slices.BinarySearchFunc(values, gap, func(v value, g float64) int { return cmp.Compare(v.gap, g) })
	return i
}

func mean(values []value) (m mode) {
	sum := 0.0
	for _, v := range values {
		m.gap += v.weight * v.gap
		sum += v.weight
	}
	m.gap /= sum
	m.count, m.error = spread(values, m.gap)
	return m
}

// middle returns the weighted median of sorted values.
func middle(values []value) (m mode) {
	half := 0.0
	for _, v := range values {
		half += v.weight / 2
	}
	for _, v := range values {
		m.gap = v.gap
		if half -= v.weight; half <= 0 {
			break
		}
	}
	m.count, m.error = spread(values, m.gap)
	return m
}

// spread returns the equivalent number of values of equal weight, and the standard error
// of their mean.
func spread(values []value, gap float64) (count, err float64) {
	w, ww, wxx := 0.0, 0.0, 0.0
	for _, v := range values {
		w, ww = w+v.weight, ww+v.weight*v.weight
		wxx += v.weight * v.weight * (v.gap - gap) * (v.gap - gap)
	}
	return w * w / ww, math.Sqrt(wxx) / w
}

// interval returns the 90 % interval of the modes of resamples of values (bootstrap).
func interval(values []value, wide float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(uint64(len(values)), 1))
	drawn := make([]value, len(values))
	found := make([]float64, resamples)
	for i := range found {
		for j := range drawn {
			drawn[j] = values[rng.IntN(len(values))]
		}
		found[i] = densest(sorted(drawn), wide).gap
	}
	slices.Sort(found)
	return found[resamples/20-1], found[resamples-resamples/20]
}

// share returns the fraction of the weight that is in the mode.
func (m mode) share(values []value) float64 {
	in, all := 0.0, 0.0
	for _, v := range values {
		all += v.weight
		if math.Abs(v.gap-m.gap) <= m.wide {
			in += v.weight
		}
	}
	return in / all
}

// fastest returns the shortest gap that the values allow. Where cross traffic was between the packets of most runs the mode is of its gaps, which are longer
// than those of the narrow link, and the resamples do not show it.
func (f result) fastest() float64 {
	gap := f.gap
	if f.count < fewRuns && f.count > 0 {
		gap /= 1 + fewError/f.count
	}
	weight := 0.
	for _, v := range f.values {
		weight += v.weight
	}
	if f.burst == 2 || weight > undelayed*float64(len(f.values)) { // the gaps of pairs are no longer than the errors of timestamps
		return gap
	}
	left := weight * fastPart
	for _, v := range f.values {
		if left -= v.weight; left <= 0 && v.gap > timestampError/float64(f.k-1) {
			return math.Min(gap, v.gap)
		}
	}
	return gap
}
