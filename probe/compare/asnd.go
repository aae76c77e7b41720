package compare

import "headgate/probe"

// ASND is the histogram of arrival sequence number differences of one of two senders
// (estimation seed, 3.4.3): how many pairs of its packets, one sent right after the
// other, had 0, 1, 2, ... of the other sender's between them. A loss or a packet out
// of order leaves out the pairs it is in.
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

// Denoised is a histogram without what the randomness of hosts and networks makes
// (observation 1). The seed gives no rule; ours: a value that fewer than noise of all
// pairs show, those at 0 not counted. H(0) is never used and left out (3.4.3).
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

// Peaks are the local maxima: higher than the right neighbour and no less than the
// left one.
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

// EstRatio is algorithm 1, for a slower path without cross traffic: the histogram's
// peak and its neighbours' mean. It is 0 if there is no peak.
func EstRatio(h []int) float64 { return estRatio(h, false) }

// EstRatio2 is algorithm 3, for one with: the peak of the weighted histogram, whose
// noise is removed.
func EstRatio2(h []int) float64 { return estRatio(Denoised(h), true) }

func estRatio(h []int, weighted bool) float64 {
	peak, most := 0, 0
	for i := 1; i < len(h); i++ {
		n := h[i]
		if weighted {
			n *= i
		}
		if n > most {
			peak, most = i, n
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

// Compare is algorithm 2: of both ratios, each under the assumption that its path is
// the slower one, the larger. It gives the second path's capacity by the first's.
func Compare(first, second []int) float64 {
	return larger(EstRatio(first), EstRatio(second))
}

func larger(first, second float64) float64 {
	switch {
	case first >= second:
		return first // the first is slower
	default:
		return 1 / second
	}
}
