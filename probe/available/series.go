package available

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
)

// point is a packet that arrived. Points are in sending order.
type point struct {
	number int
	part   int
	frame  float64 // bytes
	sent   float64 // ns, since the sample's first packet
	came   float64 // ns, since the first arrival
	owd    float64 // came - sent: a one-way delay except for a constant
	late   bool    // the receiver stalled, or another packet overtook it
	waited bool    // the packet waited for the interrupt of the next packet
}

// series has the packets of a sample, each once.
type series []point

// newSeries accepts also samples that are incomplete, have duplicates, or have numbers
// that were never sent. minGap is the minimum time in ns between packets on the path.
func newSeries(s *probe.Sample, minGap, service float64) series {
	parts := s.PartOf()
	parts = parts[:min(len(parts), len(s.Sent))]
	seen := make([]bool, len(parts))
	var out series
	highest := -1
	for _, a := range s.Arrived {
		if a.Number < 0 || a.Number >= len(parts) || seen[a.Number] {
			continue
		}
		seen[a.Number] = true
		p := point{
			number: a.Number, part: parts[a.Number], frame: float64(s.Parts[parts[a.Number]].Frame()),
			sent: float64(s.Sent[a.Number] - s.Sent[0]), came: float64(a.At - s.Arrived[0].At), late: a.Number < highest,
		}
		p.owd = p.came - p.sent
		highest = max(highest, a.Number)
		out = append(out, p)
	}
	out.markClumps(minGap, service)
	out.markWaiting(minGap)
	slices.SortFunc(out, func(a, b point) int { return cmp.Compare(a.number, b.number) })
	return out
}

// markClumps marks packets that a receiver took together after a stall. The first is
// later than its predecessor by more than a queue grows in that time, and the others
// arrive faster than the path can deliver them. Their timestamps are those of the
// receiver, not of the path. The first packets of a sample may have waited, too. The
// series must be in order of arrival. minGap is the minimum time between packets on the
// path.
func (s series) markClumps(minGap, service float64) {
	for i := 0; i < len(s); i++ {
		need := clumpPackets*minGap + clumpNoise
		if i == 0 {
			need *= 4
		} else if s[i].late || !sudden(&s[i-1], &s[i], service) {
			continue
		}
		end := s.clump(i, minGap, need)
		for j := i; j < end; j++ {
			s[j].late = true
		}
		i = max(i, end-1)
	}
}

// markWaiting marks all but the last of packets that arrived together, faster than the
// path can deliver them: they waited for the interrupt of the last one.
func (s series) markWaiting(minGap float64) {
	for i := 0; i+1 < len(s); i++ {
		if s[i+1].came-s[i].came < togetherPart*minGap-togetherNoise {
			s[i].waited = !s[i].late
			s[i].late = true
		}
	}
}

// clump returns the end of the clump that begins with packet i, or i if there is none.
// The clump ends where the time gained against the pace of the path is longest, if it is
// at least need. The first packets of a clump may be as slow as any (80 us, observed in
// the lab).
func (s series) clump(i int, minGap, need float64) int {
	end, gained, low, best := i, 0.0, 0.0, 0.0
	for k := i + 1; k < len(s) && gained > best-clumpSlack; k++ {
		gained += clumpPace*minGap - (s[k].came - s[k-1].came)
		low = min(low, gained)
		if gained-low >= need && (end == i || gained > best) {
			end, best = k+1, gained
		}
	}
	if i > 0 && end == i && len(s)-i <= 2 {
		return len(s) // the last packets of a train cannot be judged
	}
	return end
}

// stretches splits the series at steps of the clock. Packets that are suddenly late also
// split it, unless held is set: then a limiter on the path held them.
func (s series) stretches(service float64, held bool) (out []series) {
	from := 0
	var last *point
	for i := range s {
		if s[i].late {
			continue
		}
		if last != nil && (!held && sudden(last, &s[i], service) || s[i].came < last.came-clockStep) {
			out = append(out, s[from:i])
			from = i
		}
		last = &s[i]
	}
	return append(out, s[from:])
}

// jumps returns how often packets outside of clumps were suddenly late, and the maximum
// delay.
func (s series) jumps(service float64) (n int, longest time.Duration) {
	var last *point
	for i := range s {
		if s[i].late {
			continue
		}
		if last != nil && sudden(last, &s[i], service) {
			n++
			longest = max(longest, time.Duration(s[i].owd-last.owd))
		}
		last = &s[i]
	}
	return n, longest
}

// sudden reports whether a packet is later than its predecessor by more than a queue
// grows in that time: cross traffic at twice the rate of the link, and some packets.
func sudden(a, b *point, service float64) bool {
	return b.owd-a.owd > max(suddenly, suddenPackets*service+b.sent-a.sent)
}

// Constants of the series, chosen by Headgate.
const (
	// A packet is suddenly late if it is late by suddenly ns, and by suddenPackets packet
	// times of the tight link.
	suddenly      = 300e3
	suddenPackets = 8
	// The packets of a clump arrive, on average, at less than clumpPace of the minimum
	// distance on the path (a sixth at 1 Gbit/s in the lab). A clump gains at least
	// clumpPackets packet times and clumpNoise, and it ends where clumpSlack is lost
	// again.
	clumpPace    = 0.6
	clumpPackets = 1.5
	clumpNoise   = 3e3
	clumpSlack   = 100e3
	// Packets that arrive within togetherPart of the minimum distance, less the error of
	// two timestamps, arrived together.
	togetherPart  = 0.5
	togetherNoise = 2e3
	// clockStep is a step backwards that no path causes.
	clockStep = 30e3
)
