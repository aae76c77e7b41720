package traffic

import (
	"math"
	"math/bits"
)

// histogram counts durations in buckets whose width grows with them, so that an hour of requests takes
// no more memory than a second. Minimum, maximum and mean are exact; a quantile is at most 1/128 (0.8
// %) too high, the width of its bucket.
type histogram struct {
	counts   []uint64
	n        uint64
	sum      float64
	min, max int64 // ns
}

// Each power of two has 128 buckets.
const bucketBits = 7

// bucketOf returns the bucket of ns; it is exact below 256 ns.
func bucketOf(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-bucketBits-1, 0)
	return shift<<bucketBits + int(ns>>shift)
}

// bucketEnd returns the largest ns of a bucket.
func bucketEnd(b int) int64 {
	shift := max(b>>bucketBits-1, 0)
	return int64(b-shift<<bucketBits+1)<<shift - 1
}

func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	b := bucketOf(ns)
	if b >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, b+1-len(h.counts))...)
	}
	h.counts[b]++
	if h.n == 0 || ns < h.min {
		h.min = ns
	}
	h.max = max(h.max, ns)
	h.n++
	h.sum += float64(ns)
}

// quantile returns the smallest value that a fraction q of all values does not exceed.
func (h *histogram) quantile(q float64) int64 {
	rank, seen := uint64(math.Ceil(q*float64(h.n))), uint64(0)
	for b, n := range h.counts {
		if seen += n; seen >= max(rank, 1) {
			return min(max(bucketEnd(b), h.min), h.max)
		}
	}
	return h.max
}

// times returns the summary; all 0 without values.
func (h *histogram) times() (t Times) {
	if h.n == 0 {
		return t
	}
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	return Times{
		MinUs: us(h.min), MeanUs: h.sum / float64(h.n) / 1e3,
		P50Us: us(h.quantile(0.5)), P99Us: us(h.quantile(0.99)), MaxUs: us(h.max),
	}
}
