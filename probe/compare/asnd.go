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
