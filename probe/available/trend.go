package available

import (
	"math"
	"slices"
)

// Constants of pathload's tests, from the paper (Jain and Dovrolis, section IV) and, for
// the pairs of thresholds that only the tool has, from the tool.
const (
	pctRises, pctDoesNot = 0.66, 0.54
	pdtRises, pdtDoesNot = 0.55, 0.45
)

// trend is the trend of a stream's delays.
type trend int

const (
	unclear trend = iota
	rises
	doesNot
)

// medians returns the medians of about sqrt(n) groups of consecutive delays.
func medians(delays []float64) []float64 {
	groups := int(math.Sqrt(float64(len(delays))))
	out := make([]float64, groups)
	for i := range out {
		group := slices.Clone(delays[i*len(delays)/groups : (i+1)*len(delays)/groups])
		slices.Sort(group)
		out[i] = group[len(group)/2]
	}
	return out
}

// PCT is the fraction of all delays that are larger than their predecessor (pairwise
// comparison test).
func PCT(delays []float64) float64 {
	n := 0
	for i := 1; i < len(delays); i++ {
		if delays[i] > delays[i-1] {
			n++
		}
	}
	return float64(n) / float64(max(len(delays)-1, 1))
}

// PDT is the net rise of the delays divided by the sum of all changes (equation 5.4,
// pairwise difference test): 1 if they only rise, about 0 if they do not.
func PDT(delays []float64) float64 {
	sum := 0.0
	for i := 1; i < len(delays); i++ {
		sum += math.Abs(delays[i] - delays[i-1])
	}
	if sum == 0 {
		return 0
	}
	return (delays[len(delays)-1] - delays[0]) / sum
}

// trendOf returns a trend if one test shows it and the other does not contradict it.
func trendOf(delays []float64) trend {
	if len(delays) < 9 {
		return unclear
	}
	m := medians(delays)
	judge := func(v, up, flat float64) trend {
		switch {
		case v > up:
			return rises
		case v < flat:
			return doesNot
		}
		return unclear
	}
	pct, pdt := judge(PCT(m), pctRises, pctDoesNot), judge(PDT(m), pdtRises, pdtDoesNot)
	switch {
	case pct == pdt || pdt == unclear:
		return pct
	case pct == unclear:
		return pdt
	}
	return unclear
}
