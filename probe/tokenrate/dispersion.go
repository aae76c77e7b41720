package tokenrate

import (
	"math"
	"slices"
)

// cluster is the window in which the density of values is highest.
type cluster struct {
	center float64 // mean of the values
	width  float64 // half of the window, relative
	count  int
	k      int     // packets in each run
	sd     float64 // relative standard deviation of the values
}

// densest returns the window of +-width (relative) with the most values within [from,
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
	// Centre the window on its own mean. The fullest window began at a value and is
	// therefore a little too low or too high.
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

// stands reports whether a cluster stands out from the values around it: chance would
// rarely produce so many values, even in the densest of some hundred windows.
func (c cluster) stands(sorted []float64) bool {
	w := c.width * c.center
	a, _ := slices.BinarySearch(sorted, c.center-8*w)
	b, _ := slices.BinarySearch(sorted, c.center+8*w)
	around := float64(b-a-c.count) / 7
	return c.count >= minValues && float64(c.count) > 1.5*around+5*math.Sqrt(around)
}

// minValues is the minimum number of values of a cluster.
const minValues = 8

// middle returns the width of the middle eight tenths of the values.
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

// lowest is how far below the average rate of the tail the token rate may be, relative.
const lowest = 0.002

// widths are the relative windows that are tried, narrowest first. Kernel receive
// timestamps are within 1 us (measured), which is 8 % of the time of a full frame at 1
// Gbit/s and negligible at 10 Mbit/s. A window that is narrower than the timestamp error,
// relative to the duration of its runs, would find random clusters.
var widths = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08}

// share is the minimum fraction of all runs that a cluster has.
const share = 0.03

// sharpest returns the densest cluster in the narrowest window in which one stands out.
func sharpest(sorted []float64, from, to, narrowest, widest float64) (cluster, bool) {
	for _, w := range widths {
		if w < narrowest {
			continue
		}
		if w > widest {
			break
		}
		c := densest(sorted, w, from, to)
		if c.stands(sorted) && float64(c.count) >= share*float64(len(sorted)) {
			return c, true
		}
	}
	return cluster{}, false
}

// agreement finds the rate at which packets leave a shaper that has a backlog. A run of k
// packets without cross traffic takes k times the time of a packet at the token rate, for
// every k. Cross traffic between the packets makes some runs longer, and queues behind
// the shaper make some short runs shorter. The rate on which all k agree is the token
// rate, and the longest run gives it most exactly. agreement considers the packets of a
// range of the curve and rates in [low, high], in windows between one and five timestamp
// errors.
//
// With whole, only runs without loss count: a packet that is lost behind the shaper has
// used its time there. If the shaper's own queue overflows, hardly any run is complete,
// and lost packets used no time.
func (c curve) agreement(from, n int, low, high float64, whole bool) (best cluster, ok bool) {
	low, high = 8e9/high, 8e9/low // ns per byte
	widest := widths[len(widths)-1]
	for k := 1; n-from > 2*k; k *= 2 {
		// Times, not rates: a timestamp error makes times too long as often as too short.
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
		if len(times) < minValues {
			break
		}
		slices.Sort(times)
		usual := times[len(times)/2] * c.frame * float64(k)
		found, stands := sharpest(times, low, high, stamp/usual, math.Min(widest, 5*stamp/usual))
		found.k, found.sd = k, found.scatter(times)
		switch {
		case stands && (ok || k < minAgree || found.first(times)):
			best, ok = found, true
			low, high, widest = best.center*(1-best.width), best.center*(1+best.width), best.width
		case ok:
			return best.rate(), ok
		}
	}
	return best.rate(), ok
}

// first reports whether hardly any value is below the cluster. If late timestamps hide
// the clusters of short runs, the densest cluster of long runs may have cross traffic in
// each run.
func (c cluster) first(sorted []float64) bool {
	below, _ := slices.BinarySearch(sorted, c.center*(1-3*c.width))
	return float64(below) < 0.2*float64(c.count)
}

// scatter returns the relative standard deviation of a cluster's values.
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

// rate returns the cluster with its center converted from time to rate.
func (c cluster) rate() cluster {
	c.center = 8e9 / c.center
	return c
}
