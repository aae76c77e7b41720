package compare

import "headgate/probe"

// mark is a packet of the slower path as it arrived: its number, and how many of the
// faster path's had gone by then, counted by their numbers so that a loss does not
// stop the clock.
type mark struct {
	number int
	clock  int
}

// stretch is marks during which both senders were always under way: within one part of
// each train.
type stretch []mark

// stretches reads a sample's order of arrival. Duplicates and what comes late are left
// out, and a stretch ends where several packets of one sender in a row are missing: a
// queue that was full dropped them, and they took no time on the link behind it.
func stretches(s *probe.JointSample, slow, fast int) (out []stretch) {
	owners := map[int][]int{slow: s.Trains[slow].PartOf(), fast: s.Trains[fast].PartOf()}
	last, part := map[int]int{slow: -1, fast: -1}, map[int]int{}
	// Marks wait until the faster sender's next packet shows that its part goes on.
	var open, waiting stretch
	end := func() {
		if len(open) > 1 {
			out = append(out, open)
		}
		open, waiting = nil, nil
	}
	for _, a := range s.Arrived {
		parts, known := owners[a.From]
		if !known || a.Number <= last[a.From] || a.Number >= len(parts) {
			continue
		}
		p := parts[a.Number]
		if p != part[a.From] || a.Number-last[a.From] > mostMissing {
			end()
		}
		part[a.From], last[a.From] = p, a.Number
		switch {
		case a.From == fast:
			open, waiting = append(open, waiting...), nil
		case last[fast] >= 0:
			waiting = append(waiting, mark{a.Number, last[fast]})
		}
	}
	end()
	return out
}

// mostMissing packets in a row may be lost without an end to the stretch, plus one.
const mostMissing = 4

// slope is how many clock packets came per packet, on average.
func slope(st []stretch) float64 {
	clock, number := 0, 0
	for _, s := range st {
		clock += s[len(s)-1].clock - s[0].clock
		number += s[len(s)-1].number - s[0].number
	}
	return float64(clock) / float64(number)
}
