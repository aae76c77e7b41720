package compare

import "headgate.dev/headgate/probe"

// ASND returns the histogram of arrival sequence number differences of one of two senders
// (estimation seed, 3.4.3): how many pairs of its consecutive packets had 0, 1, 2, ...
// packets of the other sender between them. A pair with a lost or reordered packet is
// left out.
func ASND(s *probe.JointSample, of, other int) []int {
	var h []int
	last, between := -2, 0
	for _, a := range s.Arrived {
		switch a.From {
		case other:
			between++
		case of:
			if a.Number == last+1 {
				for len(h) <= between {
					h = append(h, 0)
				}
				h[between]++
			}
			last, between = a.Number, 0
		}
	}
	return h
}

// Denoised returns a histogram without the values that are due to randomness of hosts and
// networks (observation 1). The seed gives no rule. Headgate removes a value that fewer
// than the fraction noise of all pairs have, where pairs at 0 do not count. H(0) is never
// used and left out (3.4.3).
func Denoised(h []int) []int {
	if len(h) == 0 {
		return nil
	}
	all := 0
	for _, n := range h[1:] {
		all += n
	}
	out := make([]int, len(h))
	for i, n := range h[1:] {
		if float64(n) >= noise*float64(all) {
			out[i+1] = n
		}
	}
	return out
}

// Peaks returns the local maxima: values higher than the right neighbour and no less than
// the left one.
func Peaks(h []int) (at []int) {
	for i := 1; i < len(h); i++ {
		if h[i] > get(h, i+1) && (i == 1 || h[i] >= h[i-1]) {
			at = append(at, i)
		}
	}
	return at
}

func get(h []int, i int) int {
	if i < 1 || i >= len(h) {
		return 0
	}
	return h[i]
}

// EstRatio is algorithm 1, for a slower path without cross traffic: the mean of the
// histogram's peak and its neighbours. It is 0 if there is no peak.
func EstRatio(h []int) float64 { return estRatio(h, false) }

// EstRatio2 is algorithm 3, for a slower path with cross traffic: the peak of the
// weighted histogram after Denoised.
func EstRatio2(h []int) float64 { return estRatio(Denoised(h), true) }

func estRatio(h []int, weighted bool) float64 {
	peak, highest := 0, 0
	for i := 1; i < len(h); i++ {
		n := h[i]
		if weighted {
			n *= i
		}
		if n > highest {
			peak, highest = i, n
		}
	}
	if peak == 0 {
		return 0
	}
	sum, count := 0, 0
	for i := peak - 1; i <= peak+1; i++ {
		sum += i * get(h, i)
		count += get(h, i)
	}
	return float64(sum) / float64(count)
}

// Compare is algorithm 2: the larger of both ratios, each under the assumption that its
// path is the slower one. It returns the capacity of the second path divided by that of
// the first.
func Compare(first, second []int) float64 {
	return larger(EstRatio(first), EstRatio(second))
}

func larger(first, second float64) float64 {
	switch {
	case first >= second:
		return first // the first path is slower
	default:
		return 1 / second
	}
}
