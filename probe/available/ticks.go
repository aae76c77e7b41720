package available

import (
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
)

// TickDelays returns the delays of the probes by the clock of the ticks (procedure 1).
// Only the first probe of a tick counts, and its arrival time is that of the tick before
// it. probes and ticks are the indexes of the senders. Ticks are identified by their
// numbers, because some are lost. The time of a tick is the time at which it was sent;
// the seed uses its number times the gap, but a sender is sometimes late.
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

// steady returns the fraction of the gaps between ticks at the receiver that are within
// epsilon of the gaps at the sender (procedure 2), and how many gaps could be judged.
//
// The seed uses all gaps. A receiver that stalls distorts most of them, whatever the tick
// interval is, so that the procedure would not terminate: gaps at both ends of a clump
// show nothing of the path and are left out.
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
