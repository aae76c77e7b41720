package share

import "slices"

// rateHistory is the last samples of a flow's offered rate in AQoS, the latest at the end.
type rateHistory []int64

func (h *rateHistory) add(rate int64) {
	*h = append(*h, rate)
	if len(*h) > aqosKept {
		*h = slices.Delete(*h, 0, 1)
	}
}

// last returns the latest sample, 0 if there is none.
func (h rateHistory) last() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1]
}

// previous returns the sample before the latest, or otherwise if there is none.
func (h rateHistory) previous(otherwise int64) int64 {
	if len(h) < 2 {
		return otherwise
	}
	return h[len(h)-2]
}

// used returns the samples from which trends are extracted: the last four.
func (h rateHistory) used() rateHistory { return h[max(0, len(h)-aqosUsed):] }

// mean returns the mean of the used samples.
func (h rateHistory) mean() int64 {
	var sum int64
	for _, r := range h.used() {
		sum += r
	}
	return sum / max(1, int64(len(h.used())))
}

// trend returns the slope of the line of least squares through the used samples, in bit/s per
// cycle, rounded towards 0.
func (h rateHistory) trend() int64 {
	used := h.used()
	n := int64(len(used))
	var product, squares int64 // times are doubled, so that their mean is an integer
	for i, r := range used {
		t := 2*int64(i) - (n - 1)
		product += t * r
		squares += t * t
	}
	if squares == 0 {
		return 0
	}
	return 2 * product / squares
}

// calcOptimalDecrease is CALC-OPTIMAL-DECREASE: "the maximum of either the difference between
// the tracking and mean rate over the past few cycles or a bare minimum decrease". The minimum
// is 1 % of the tracking variable, and does not bring it below the rate; the difference to the
// mean may, after a rise.
func calcOptimalDecrease(tracking, rate int64, h rateHistory) int64 {
	return max(tracking-h.mean(), min(max(tracking/aqosMinimum, 1), tracking-rate))
}

// calcOptimalIncrease is CALC-OPTIMAL-INCREASE, which the thesis does not define. Section 3.3
// says that the tracking variable is the upper limit of the rates that the algorithm expects,
// and that the past four samples predict the next seconds. The increase therefore leads to the
// rate plus one cycle of its trend, if it rises.
func calcOptimalIncrease(tracking, rate int64, h rateHistory) int64 {
	return max(0, rate+max(0, h.trend())-tracking)
}

// findIncrease is FIND-INCREASE, which the thesis does not define: a flow has begun to grow if
// its trend rises, or if it offers more than its meter passes. Without the second condition a
// flow that had jumped to a rate inside its reservation, and was refused then, would be refused
// as long as it keeps that rate.
func findIncrease(rate, tracking int64, h rateHistory) bool {
	return h.trend() > 0 || rate > tracking
}
