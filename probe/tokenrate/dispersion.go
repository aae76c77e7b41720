package tokenrate

import (
	"math"
	"slices"
)

// cluster is values that lie close together: where more of them are than anywhere
// else.
type cluster struct {
	center float64 // their mean
	width  float64 // half of the window, relative
	count  int
	k      int     // packets in each of its runs
	sd     float64 // of its values, relative
}

// densest finds the window of +-width (relative) with the most values within [from,
// to]. The values must be sorted.
func densest(sorted []float64, width, from, to float64) (best cluster) {
	lo, _ := slices.BinarySearch(sorted, from)
	hi, _ := slices.BinarySearch(sorted, to)
	best = cluster{width: width}
	end := lo
	first := 0
	for i := lo; i < hi; i++ {
		for end < hi && sorted[end] <= sorted[i]*(1+2*width) {
			end++
		}
		if n := end - i; n > best.count {
			best.count, first = n, i
		}
	}
	// The mean of a window that follows its own mean: the one that counted most began
	// at a value, and so stands a little too low or too high.
	for range 3 {
		if best.count == 0 {
			return best
		}
		best.center = mean(sorted[first : first+best.count])
		a, _ := slices.BinarySearch(sorted, best.center*(1-width))
		b, _ := slices.BinarySearch(sorted, best.center*(1+width))
		if b == a {
			return best
		}
		first, best.count = a, b-a
	}
	best.center = mean(sorted[first : first+best.count])
	return best
}

// stands tells whether a cluster is a heap of its own: of a window's fill around it
// chance would hardly ever make so many, although the densest of some hundred
// windows was looked for.
func (c cluster) stands(sorted []float64) bool {
	w := c.width * c.center
	a, _ := slices.BinarySearch(sorted, c.center-8*w)
	b, _ := slices.BinarySearch(sorted, c.center+8*w)
	around := float64(b-a-c.count) / 7
	return c.count >= least && float64(c.count) > 1.5*around+5*math.Sqrt(around)
}

// least values make a cluster.
const least = 8

// middle is what the middle eight tenths of values lie within.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	tenth := len(sorted) / 10
	return sorted[len(sorted)-1-tenth] - sorted[tenth]
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// widths are those of windows that are tried, the sharpest first: a kernel's receive
// stamps are within 1 us (measured), which is 8 % of a full frame at 1 Gbit/s and
// nothing of one at 10 Mbit/s. A window that is narrower than stamps are exact, for
// the length of its runs, would find heaps that chance made.
// lowest is how far below the rate of the whole tail the token rate is looked for.
const lowest = 0.002

var widths = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08}

// share of all runs is in a cluster at least.
const share = 0.03

// sharpest is the densest cluster in the narrowest window in which one stands out.
func sharpest(sorted []float64, from, to, narrowest, most float64) (cluster, bool) {
	for _, w := range widths {
		if w < narrowest {
			continue
		}
		if w > most {
			break
		}
		c := densest(sorted, w, from, to)
		if c.stands(sorted) && float64(c.count) >= share*float64(len(sorted)) {
			return c, true
		}
	}
	return cluster{}, false
}

// agreement finds the rate at which packets leave a shaper that always has some
// waiting: k packets in a row, with no one else's among them, take k times a
// packet's time at the token rate, for every k. Others' packets among them make some
// runs longer, queues behind the shaper some short ones shorter; what all k agree on
// is the token rate, and the longest run says it most exactly. It looks among the
// packets of a range of the curve, for rates in [low, high], in windows between one and
// five of what a stamp is off by.
//
// With whole only runs count of which nothing was lost: what is lost behind the shaper
// had its time there. Where a shaper's own queue overflows hardly any run is whole,
// and what was lost took no time.
func (c curve) agreement(from, n int, low, high float64, whole bool) (best cluster, ok bool) {
	low, high = 8e9/high, 8e9/low // ns a byte
	most := widths[len(widths)-1]
	for k := 1; n-from > 2*k; k *= 2 {
		// Times, not rates: what a stamp is off by is as often too long as too short.
		times := make([]float64, 0, n-from-k)
		for i := from; i+k < n; i++ {
			bytes := c.bytes[i+k] - c.bytes[i]
			if whole && bytes != float64(c.number[i+k]-c.number[i])*c.frame {
				continue
			}
			if d := c.at[i+k] - c.at[i]; d > 0 {
				times = append(times, d/bytes)
			}
		}
		if len(times) < least {
			break
		}
		slices.Sort(times)
		usual := times[len(times)/2] * c.frame * float64(k)
		found, stands := sharpest(times, low, high, stamp/usual, math.Min(most, 5*stamp/usual))
		found.k, found.sd = k, found.scatter(times)
		switch {
		case stands && (ok || k < leastAgree || found.first(times)):
			best, ok = found, true
			low, high, most = best.center*(1-best.width), best.center*(1+best.width), best.width
		case ok:
			return best.rate(), ok
		}
	}
	return best.rate(), ok
}

// first tells whether hardly any value is less than the cluster's. Where late stamps hide
// the heaps of short runs, the densest of long ones may have a packet of others in each.
func (c cluster) first(sorted []float64) bool {
	below, _ := slices.BinarySearch(sorted, c.center*(1-3*c.width))
	return float64(below) < 0.2*float64(c.count)
}

// scatter is the standard deviation of a cluster's values, relative.
func (c cluster) scatter(sorted []float64) float64 {
	a, _ := slices.BinarySearch(sorted, c.center*(1-c.width))
	b, _ := slices.BinarySearch(sorted, c.center*(1+c.width))
	sum := 0.0
	for _, v := range sorted[a:b] {
		sum += (v - c.center) * (v - c.center)
	}
	if sum == 0 {
		return 0
	}
	return math.Sqrt(sum/float64(b-a)) / c.center
}

// rate is the cluster's center as a rate.
func (c cluster) rate() cluster {
	c.center = 8e9 / c.center
	return c
}
