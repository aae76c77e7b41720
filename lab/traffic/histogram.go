package traffic

import (
	"math"
	"math/bits"
)

// histogram counts lengths of time in buckets that grow with them, so that an
// hour of requests takes no more memory than a second. Smallest, largest and mean
// are exact; a quantile is at most 1/128 (0.8 %) too high, as its bucket is wide.
type histogram struct {
	counts   []uint64
	n        uint64
	sum      float64
	min, max int64 // ns
}

// Each power of two has 128 buckets.
const bucketBits = 7

// bucketOf ns: exact below 256 ns.
func bucketOf(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-bucketBits-1, 0)
	return shift<<bucketBits + int(ns>>shift)
}

// bucketEnd is the largest ns of a bucket.
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

// quantile is the smallest value that a part q of all do not exceed.
func (h *histogram) quantile(q float64) int64 {
	rank, seen := uint64(math.Ceil(q*float64(h.n))), uint64(0)
	for b, n := range h.counts {
		if seen += n; seen >= max(rank, 1) {
			return min(max(bucketEnd(b), h.min), h.max)
		}
	}
	return h.max
}

// times sums up; all 0 if there is nothing.
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
