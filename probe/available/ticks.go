package available

import (
	"math"
	"slices"
	"time"

	"headgate/probe"
)

// TickDelays are the probes' delays by the clock of ticks (procedure 1): only the first
// probe of a tick counts, and came with the tick before it. probes and ticks are their
// senders' places. Ticks are known by their numbers, because some are lost. A tick's
// time is that at which it was sent, where the seed takes its number times the gap:
// a sender is late now and then.
func TickDelays(s *probe.JointSample, probes, ticks int) (out []float64) {
	tick, last, used := -1, -1, true
	for _, a := range s.Arrived {
		switch {
		case a.From == ticks && a.Number > tick && a.Number < len(s.Sent[ticks]):
			tick, used = a.Number, false
		case a.From == probes && a.Number > last && a.Number < len(s.Sent[probes]):
			last = a.Number
			if !used {
				out = append(out, float64(s.Sent[ticks][tick]-s.Sent[ticks][0])-float64(s.Sent[probes][a.Number]-s.Sent[probes][0]))
				used = true
			}
		}
	}
	return out
}

// steady is the part of the gaps between ticks at the receiver that are within
// epsilon of those at which they left (procedure 2), and how many could be judged.
//
// The seed takes all gaps. A receiver that stands still makes most of them wrong,
// however far apart ticks are, and the procedure would go on for ever: gaps at both
// ends of a clump say nothing of the path and are left out.
func steady(s *probe.Sample, gap time.Duration) (part float64, judged int) {
	good := 0
	var last *point
	all := newSeries(s, float64(gap)/2, 0)
	slices.SortStableFunc(all, func(a, b point) int { return a.number - b.number })
	for i := range all {
		p := &all[i]
		if p.late {
			last = nil
			continue
		}
		if last != nil && p.number == last.number+1 {
			judged++
			if math.Abs(p.came-last.came-(p.sent-last.sent)) < epsilon*float64(gap) {
				good++
			}
		}
		last = p
	}
	return float64(good) / float64(max(judged, 1)), judged
}
