package bottleneck

import (
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// minVotes is the number of measurements that must agree against others.
	minVotes = 2
	// maxError is how many times more than a path gives a measurement of it may show. A busy host holds packets back, and they arrive at once: of 56
	// measurements over a shaper of 30 Mbit/s, 8 showed 32 to 52 (bench loop, 7 runs).
	maxError = 2
	// votesApart is the part of a rate by which votes differ: of 9 that saw the limit of a shaper of 120 Mbit/s on a busy host, 8 showed 116 to 127.
	votesApart = 0.1
)

// believed returns the measurements without those that others outvote. One measurement that shows too much is enough to hide a weak link from all others.
//
// A measurement that no link of its path explains contradicts others: either it is wrong, or those that show more over one of the links. If minVotes of the
// same rate are explained by one link then, and are more than those that show the same higher rate over it, they are believed. What shows more than maxError times
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
			votes, faster := 0, []int(nil)
			for _, i := range over[l] {
				switch {
				case Apart(all[i].Rate, m.Rate) > votesApart && all[i].Rate > m.Rate:
					faster = append(faster, i)
				case Apart(all[i].Rate, m.Rate) <= votesApart && unexplained(all[i]):
					votes++
				}
			}
			switch margin := votes - agreeing(all, faster, m.Rate); {
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

// agreeing returns how many of some measurements show the same rate at most, without those that a bucket explains over a path of a rate. What is wrong is
// wrong in different ways: over a shaper of 120 Mbit/s two showed 118, one 129 and one 196.
func agreeing(all []Measurement, some []int, rate unit.Rate) (most int) {
	for _, i := range some {
		same := 0
		for _, j := range some {
			if Apart(all[i].Rate, all[j].Rate) <= votesApart && !all[j].bucketExplains(rate) {
				same++
			}
		}
		most = max(most, same)
	}
	return most
}
