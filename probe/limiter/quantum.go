package limiter

import (
	"math"
	"slices"
)

// quantum is a packet's time at what serves packets one after the other, a link or a
// shaper that always has some waiting: what runs of 1, 2, 4 ... packets agree on.
type quantum struct {
	gap   float64 // ns
	off   float64 // half of its 90 % interval
	share float64 // of all gaps that are of it
}

const (
	// window is how wide a cluster of gaps is, as a part of it, and windowNoise in ns:
	// three times what two stamps of 1 us are off by, less for a mean of several.
	window      = 0.02
	windowNoise = 2000
	// oneMore packet among k, lost or another's, is 1/k of a run: it must be outside.
	oneMore = 0.35
	// aboutMean: a processor that stood still as a train began makes it look shorter.
	aboutMean = 1.05
	// leastCluster gaps are a cluster.
	leastCluster = 8
)

// serves finds the quantum of times, if there is one: no server is slower than what
// came through it.
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
		if n < leastCluster || k > 1 && math.Abs(mean-q.gap) > window*q.gap+noise {
			break
		}
		if k == 1 {
			q.share = float64(n) / float64(len(runs))
		}
		// Runs of k overlap: only every k-th is new.
		q.gap = mean
		q.off = z90*sd/math.Sqrt(math.Max(float64(n)/float64(k), 1)) + clockPace*mean
		ok = true
	}
	return q, ok
}

// densest is the middle of the window with the most of some sorted values.
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

// around is the mean of what lies around a center, in a window that follows it.
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

// compressed: where others wait in a queue, packets come closer together than the
// link that spread them had made them.
const compressed = 0.95

// capacity of a path as short bursts back to back show it, in bit/s: packets that
// find a bucket full of tokens leave at the link's rate, even if it holds one full
// frame alone. It is at least low; rate is 0 if the sender was no faster.
func capacity(short []view) (rate, low float64) {
	var times, sent []float64 // ns a byte
	frame := 0.0
	for i := range short {
		v := &short[i]
		last := len(v.at) - 1
		if len(v.n) != len(v.sent) || last < 1 || !slices.IsSorted(v.n) {
			continue
		}
		bytes := float64(last) * v.frame
		if (v.at[last]-v.at[0])/bytes < clump/float64(full) {
			continue // taken late
		}
		frame = math.Max(frame, bytes)
		times = append(times, (v.at[last]-v.at[0])/bytes)
		sent = append(sent, (v.sent[last]-v.sent[0])/bytes)
	}
	if len(times) < leastCluster {
		return 0, 0
	}
	slices.Sort(times)
	noise := windowNoise / frame
	time, sd, n := around(times, densest(times, noise), window, noise)
	if n < leastCluster || time <= 0 {
		return 0, 0
	}
	low = compressed * 8e9 / (time + 2*sd/math.Sqrt(float64(n)))
	if median(sent) > time*0.7 {
		return 0, low
	}
	return 8e9 / time, low
}
