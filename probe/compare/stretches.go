package compare

import "headgate.dev/headgate/probe"

// mark is an arrival of the slower path: its packet number, and the number of the faster
// path's last packet. Packet numbers are used as the clock, so that a loss does not stop
// it.
type mark struct {
	number int
	clock  int
}

// stretch is a sequence of marks during which both senders were sending: within one part
// of each train.
type stretch []mark

// stretches evaluates the order of arrival of a sample. Duplicates and late packets are
// left out. A stretch ends where several packets of one sender in a row are missing: a
// full queue dropped them, and they took no time on the link behind the queue.
func stretches(s *probe.JointSample, slow, fast int) (out []stretch) {
	owners := map[int][]int{slow: s.Trains[slow].PartOf(), fast: s.Trains[fast].PartOf()}
	last, part := map[int]int{slow: -1, fast: -1}, map[int]int{}
	// Marks wait until the next packet of the faster sender shows that its part
	// continues.
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
		if p != part[a.From] || a.Number-last[a.From] > maxMissing {
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

// maxMissing + 1 packets in a row may be lost without an end of the stretch.
const maxMissing = 4

// slope returns how many clock packets arrived per packet, on average.
func slope(st []stretch) float64 {
	clock, number := 0, 0
	for _, s := range st {
		clock += s[len(s)-1].clock - s[0].clock
		number += s[len(s)-1].number - s[0].number
	}
	return float64(clock) / float64(number)
}
