package probe

// Histogram counts values in bins of equal width, from 0.
type Histogram struct {
	Width  float64
	Counts []int
	Total  int
}

// Mode is a local maximum of a histogram: a bin that is higher than its right neighbour
// and no lower than its left neighbour.
type Mode struct {
	// At is the mean of the values in the bin; the bin is [From, To).
	At, From, To float64
	Count        int
}

// NewHistogram counts values, none of which may be negative.
func NewHistogram(values []float64, width float64) *Histogram {
	h := &Histogram{Width: width, Total: len(values)}
	for _, v := range values {
		bin := int(v / width)
		if bin >= len(h.Counts) {
			h.Counts = append(h.Counts, make([]int, bin+1-len(h.Counts))...)
		}
		h.Counts[bin]++
	}
	return h
}

// Share returns the fraction of all values that are in the bin of v.
func (h *Histogram) Share(v float64) float64 {
	if bin := int(v / h.Width); bin < len(h.Counts) && h.Total > 0 {
		return float64(h.Counts[bin]) / float64(h.Total)
	}
	return 0
}

// Modes returns all local maxima with at least minCount values, lowest first. Of adjacent
// equal bins the last is the mode.
func (h *Histogram) Modes(values []float64, minCount int) (modes []Mode) {
	at := func(bin int) int {
		if bin < 0 || bin >= len(h.Counts) {
			return 0
		}
		return h.Counts[bin]
	}
	sums := make([]float64, len(h.Counts))
	for _, v := range values {
		sums[int(v/h.Width)] += v
	}
	for bin, n := range h.Counts {
		if n < max(minCount, 1) || n <= at(bin+1) || n < at(bin-1) {
			continue
		}
		modes = append(modes, Mode{
			At: sums[bin] / float64(n), From: float64(bin) * h.Width, To: float64(bin+1) * h.Width, Count: n,
		})
	}
	return modes
}

// Strongest returns the mode with the most values whose bin overlaps [from, to], and the
// lowest of equal ones (estimation seed, 2.6.3, step 5). ok is false if there is none.
func Strongest(modes []Mode, from, to float64) (m Mode, ok bool) {
	for _, c := range modes {
		if c.To > from && c.From <= to && c.Count > m.Count {
			m, ok = c, true
		}
	}
	return m, ok
}

// DispersionRates returns, for each pair of consecutive packets of s, the bits of a
// packet divided by the time between the two (u = s/d, 2.4.3). Pairs with equal
// timestamps are left out.
func (s *Sample) DispersionRates() []float64 {
	bits := float64(s.Parts[0].Frame()) * 8e9
	out := make([]float64, 0, len(s.Arrived))
	for _, d := range s.Dispersions() {
		if d > 0 {
			out = append(out, bits/float64(d))
		}
	}
	return out
}
