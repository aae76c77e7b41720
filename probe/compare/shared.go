package compare

import "headgate/probe"

// shared tells whether a link behind the meeting point carries hardly more of both than
// the faster path alone would: by how fast packets come while both send, and while only
// the slower still does; mean is how many of the faster come for one of the slower. It
// needs times, but only over whole blocks.
func shared(samples []probe.JointSample, slow int, mean float64) bool {
	var both, alone, bothTook, aloneTook float64
	for i := range samples {
		s := &samples[i]
		if s.Purpose != blocksPurpose {
			continue
		}
		owners := s.Trains[slow].PartOf()
		blocks := map[int][]int{} // where a block's packets are in Arrived
		for at, a := range s.Arrived {
			if (a.From == slow || a.From == 1-slow) && a.Number >= 0 && a.Number < len(owners) {
				blocks[owners[a.Number]] = append(blocks[owners[a.Number]], at)
			}
		}
		for _, b := range blocks {
			from, to := -1, -1 // where the faster one's begin and end
			for j, at := range b {
				if s.Arrived[at].From != slow {
					if from < 0 {
						from = j
					}
					to = j
				}
			}
			if from < 0 || len(b)-1-to < least {
				continue
			}
			if stalled(s, b) {
				continue
			}
			both += float64(to - from)
			bothTook += float64(s.Arrived[b[to]].At - s.Arrived[b[from]].At)
			alone += float64(len(b) - 1 - to - 1)
			aloneTook += float64(s.Arrived[b[len(b)-1]].At - s.Arrived[b[to+1]].At)
		}
	}
	return bothTook > 0 && aloneTook > 0 && both/bothTook < sharedBy*mean*alone/aloneTook
}

// stalled tells whether a block's times are the receiver's own: it stood still for a part
// of them, or its clock was set.
func stalled(s *probe.JointSample, block []int) bool {
	longest := int64(0)
	for i, at := range block[1:] {
		longest = max(longest, s.Arrived[at].At-s.Arrived[block[i]].At)
	}
	return float64(longest) > stall*float64(s.Arrived[block[len(block)-1]].At-s.Arrived[block[0]].At)
}

// stall is the longest silence in a block, as a part of it, that cross traffic makes.
const stall = 0.15

// sharedBy what comes of both is at least more than what the faster path carries; with
// nothing shared it would be 1 + 1/gamma.
const sharedBy = 1.06
