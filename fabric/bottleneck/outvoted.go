package bottleneck

import (
	"slices"

	"headgate.dev/headgate/fabric"
)

// Values chosen for Headgate.
const (
	// minVotes is the number of measurements that must agree against others.
	minVotes = 2
	// maxError is how many times more than a path gives a measurement of it may show. A busy host holds packets back, and they arrive at once: of 56
	// measurements over a shaper of 30 Mbit/s, 8 showed 32 to 52 (bench loop, 7 runs).
	maxError = 2
)

// believed returns the measurements without those that others outvote. One measurement that shows too much is enough to hide a weak link from all others.
//
// A measurement that no link of its path explains contradicts others: either it is wrong, or those that show more over one of the links. If minVotes of the
// same rate are explained by one link then, and are more than those that show more over it, they are believed. What shows more than maxError times
// as much is never left out. What a bucket explains is left out with the others, and is not counted against those that agree.
func believed(all []Measurement) []Measurement {
	for {
		wrong := outvoted(all)
		if len(wrong) == 0 {
			return all
		}
		var rest []Measurement
		for i, m := range all {
			if !slices.Contains(wrong, i) {
				rest = append(rest, m)
			}
		}
		all = rest
	}
}

// outvoted returns the measurements over one link that most others contradict, nil if there are none, or if it is as well those over another link.
func outvoted(all []Measurement) (wrong []int) {
	over := map[fabric.LinkID][]int{}
	for i, m := range all {
		for _, l := range m.Path {
			over[l] = append(over[l], i)
		}
	}
	least := leastOf(all)
	unexplained := func(m Measurement) bool {
		return !m.AtLeast && !slices.ContainsFunc(m.Path, func(l fabric.LinkID) bool { return !more(least[l], m.Rate) })
	}
	most, tie := 0, false
	for _, m := range all {
		if !unexplained(m) {
			continue
		}
		for _, l := range m.Path {
			if least[l] > maxError*m.Rate {
				continue
			}
			votes, against, faster := 0, 0, []int(nil)
			for _, i := range over[l] {
				switch {
				case more(all[i].Rate, m.Rate):
					faster = append(faster, i)
					if !all[i].bucketExplains(m.Rate) {
						against++
					}
				case Same(all[i].Rate, m.Rate) && unexplained(all[i]):
					votes++
				}
			}
			switch margin := votes - against; {
			case votes < minVotes || margin <= 0 || margin < most:
			case margin > most:
				wrong, most, tie = faster, margin, false
			case !slices.Equal(faster, wrong):
				tie = true
			}
		}
	}
	if tie {
		return nil
	}
	return wrong
}
