package capacity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// value is a gap with its weight.
type value struct{ gap, weight float64 }

// mode is where most weight lies within +-wide, or with wide 0 the middle of all.
type mode struct {
	gap  float64
	wide float64
	// count is of how many equal values its weight would be, and error its standard
	// error.
	count, error float64
}

// sorted puts values in order.
func sorted(values []value) []value {
	slices.SortFunc(values, func(a, b value) int { return cmp.Compare(a.gap, b.gap) })
	return values
}

// densest finds the mode of sorted values, in a window that comes to lie around its
// own mean.
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

// reach is how many of sorted values are below a gap.
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

// middle is the median of sorted values by their weights.
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

// spread is how many equal values these are worth, and the error of their mean.
func spread(values []value, gap float64) (count, err float64) {
	w, ww, wxx := 0.0, 0.0, 0.0
	for _, v := range values {
		w, ww = w+v.weight, ww+v.weight*v.weight
		wxx += v.weight * v.weight * (v.gap - gap) * (v.gap - gap)
	}
	return w * w / ww, math.Sqrt(wxx) / w
}

// interval holds 90 % of the modes of values drawn from these.
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

// share is the part of all weight that is in the mode.
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
