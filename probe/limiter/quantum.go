package limiter

import (
	"math"
	"slices"
)

// quantum is the time of a packet at a link or at a shaper with a backlog, which serves
// packets one after the other: the time on which runs of 1, 2, 4 ... packets agree.
type quantum struct {
	gap   float64 // ns
	off   float64 // half of the 90 % interval
	share float64 // fraction of all gaps that agree
}

const (
	// window is the relative width of a cluster of gaps, windowNoise its minimum in ns:
	// three times the error of two timestamps of 1 us, less for a mean of several.
	window      = 0.02
	windowNoise = 2000
	// oneMore: one more packet among k, lost or of cross traffic, is 1/k of a run and
	// must be outside of the window.
	oneMore = 0.35
	// aboutMean: a processor that stalled at the start of a train makes the train look
	// shorter.
	aboutMean = 1.05
	// minCluster is the minimum number of gaps of a cluster.
	minCluster = 8
)

// serves returns the quantum of times, if there is one. No server is slower than the
// average rate of what passed it.
func serves(times []float64) (q quantum, ok bool) {
	if len(times) < 2 {
		return q, false
	}
	slowest := (times[len(times)-1] - times[0]) / float64(len(times)-1) * aboutMean
	for k := 1; len(times) > 2*k; k *= 2 {
		runs := make([]float64, 0, len(times))
		for i := k; i < len(times); i++ {
			runs = append(runs, (times[i]-times[i-k])/float64(k))
		}
		slices.Sort(runs)
		noise, width := windowNoise/float64(k), math.Min(window, oneMore/float64(k))
		center := q.gap
		if k == 1 {
			longest, _ := slices.BinarySearch(runs, slowest)
			center = densest(runs[:longest], noise)
		}
		mean, sd, n := around(runs, center, width, noise)
		if n < minCluster || k > 1 && math.Abs(mean-q.gap) > window*q.gap+noise {
			break
		}
		if k == 1 {
			q.share = float64(n) / float64(len(runs))
		}
		// Runs of k packets overlap: only every k-th is independent.
		q.gap = mean
		q.off = z90*sd/math.Sqrt(math.Max(float64(n)/float64(k), 1)) + clockPace*mean
		ok = true
	}
	return q, ok
}

// densest returns the middle of the window with the most sorted values.
func densest(sorted []float64, noise float64) float64 {
	best, at, end := 0, 0.0, 0
	for i, v := range sorted {
		end = max(end, i)
		for end < len(sorted) && sorted[end] <= v+2*math.Max(window*v, noise/2) {
			end++
		}
		if end-i > best {
			best, at = end-i, sorted[i+(end-i)/2]
		}
	}
	return at
}

// around returns the mean of the values around a center, in a window that is centred on
// it.
func around(sorted []float64, center, width, noise float64) (mean, sd float64, n int) {
	mean = center
	for range 4 {
		w := math.Max(width*mean, noise)
		a, _ := slices.BinarySearch(sorted, mean-w)
		b, _ := slices.BinarySearch(sorted, mean+w)
		if n = b - a; n == 0 {
			return mean, 0, 0
		}
		mean, sd = spread(sorted[a:b])
	}
	return mean, sd, n
}

// compressed: cross traffic in a queue brings packets closer together than the link did
// that spaced them.
const compressed = 0.95

// capacity returns the capacity of a path, in bit/s, from short bursts back to back.
// Packets that find a bucket full of tokens leave at the rate of the link, even if the
// bucket holds only one full frame. low is a lower bound. rate is 0 if the sender was no
// faster.
func capacity(short []trainView) (rate, low float64) {
	var times, sent []float64 // ns per byte
	frame := 0.0
	for i := range short {
		v := &short[i]
		last := len(v.at) - 1
		if len(v.n) != len(v.sent) || last < 1 || !slices.IsSorted(v.n) {
			continue
		}
		bytes := float64(last) * v.frame
		if (v.at[last]-v.at[0])/bytes < clump/float64(full) {
			continue // the receiver took the burst late
		}
		frame = math.Max(frame, bytes)
		times = append(times, (v.at[last]-v.at[0])/bytes)
		sent = append(sent, (v.sent[last]-v.sent[0])/bytes)
	}
	if len(times) < minCluster {
		return 0, 0
	}
	slices.Sort(times)
	noise := windowNoise / frame
	time, sd, n := around(times, densest(times, noise), window, noise)
	if n < minCluster || time <= 0 {
		return 0, 0
	}
	low = compressed * 8e9 / (time + 2*sd/math.Sqrt(float64(n)))
	if median(sent) > time*0.7 {
		return 0, low
	}
	return 8e9 / time, low
}
