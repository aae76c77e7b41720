package compare

import "headgate.dev/headgate/probe"

// shared reports whether a link behind the meeting point carries hardly more of both
// senders than of the faster path alone. It compares the rate of arrival while both send
// with that while only the slower one still sends. mean is the number of packets of the
// faster path for each of the slower one. shared needs times, but only over whole blocks.
func shared(samples []probe.JointSample, slow int, mean float64) bool {
	var both, alone, bothTook, aloneTook float64
	for i := range samples {
		s := &samples[i]
		if s.Purpose != blocksPurpose {
			continue
		}
		owners := s.Trains[slow].PartOf()
		blocks := map[int][]int{} // positions of a block's packets in Arrived
		for at, a := range s.Arrived {
			if (a.From == slow || a.From == 1-slow) && a.Number >= 0 && a.Number < len(owners) {
				blocks[owners[a.Number]] = append(blocks[owners[a.Number]], at)
			}
		}
		for _, b := range blocks {
			from, to := -1, -1 // first and last packet of the faster path
			for j, at := range b {
				if s.Arrived[at].From != slow {
					if from < 0 {
						from = j
					}
					to = j
				}
			}
			if from < 0 || len(b)-1-to < minWindows {
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

// stalled reports whether the times of a block are distorted by the receiver: it stalled
// for a part of the block, or its clock was set.
func stalled(s *probe.JointSample, block []int) bool {
	longest := int64(0)
	for i, at := range block[1:] {
		longest = max(longest, s.Arrived[at].At-s.Arrived[block[i]].At)
	}
	return float64(longest) > stall*float64(s.Arrived[block[len(block)-1]].At-s.Arrived[block[0]].At)
}

// stall is the longest silence that cross traffic causes, as a fraction of a block.
const stall = 0.15

// sharedBy is the minimum rate of both senders relative to the faster path's capacity if
// nothing is shared. Without a shared link it would be 1 + 1/gamma.
const sharedBy = 1.06
