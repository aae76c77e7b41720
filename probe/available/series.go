package available

import (
	"cmp"
	"slices"
	"time"

	"headgate/probe"
)

// point is a packet that came, in the order in which they were sent.
type point struct {
	number int
	part   int
	frame  float64 // bytes
	sent   float64 // ns, since the sample's first packet
	came   float64 // ns, since the first arrival
	owd    float64 // came - sent: a one-way delay but for a constant
	late   bool    // its receiver stood still, or another overtook it
	waited bool    // for the interrupt that brought the next
}

// series are a sample's packets, each once.
type series []point

// newSeries takes what can be taken of a sample: cut short, doubled or with numbers
// that were never sent. least is how far apart in ns the path lets two packets come.
func newSeries(s *probe.Sample, least, service float64) series {
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
	out.markClumps(least, service)
	out.markWaiting(least)
	slices.SortFunc(out, func(a, b point) int { return cmp.Compare(a.number, b.number) })
	return out
}

// markClumps finds what a receiver that had stood still took all at once: a packet
// that is suddenly later than the one before by more than a queue grows in that time,
// and all behind it that come faster than the path lets them. Their stamps are the
// receiver's, not the path's. What comes first may have waited, too. In the order of
// arrival; least is how far apart the path lets packets come.
func (s series) markClumps(least, service float64) {
	for i := 0; i < len(s); i++ {
		need := clumpPackets*least + clumpNoise
		if i == 0 {
			need *= 4
		} else if s[i].late || !sudden(&s[i-1], &s[i], service) {
			continue
		}
		end := s.clump(i, least, need)
		for j := i; j < end; j++ {
			s[j].late = true
		}
		i = max(i, end-1)
	}
}

// markWaiting leaves of packets that came together, faster than the path lets them,
// only the last: the others waited for the interrupt that it brought.
func (s series) markWaiting(least float64) {
	for i := 0; i+1 < len(s); i++ {
		if s[i+1].came-s[i].came < togetherPart*least-togetherNoise {
			s[i].waited = !s[i].late
			s[i].late = true
		}
	}
}

// clump is the end of one that begins with packet i, or i if there is none: where the
// time that was gained on the path's pace is the longest, if that is as much as need.
// The first packets of a clump are as slow as any (80 us, seen in the lab).
func (s series) clump(i int, least, need float64) int {
	end, gained, low, best := i, 0.0, 0.0, 0.0
	for k := i + 1; k < len(s) && gained > best-clumpSlack; k++ {
		gained += clumpPace*least - (s[k].came - s[k-1].came)
		low = min(low, gained)
		if gained-low >= need && (end == i || gained > best) {
			end, best = k+1, gained
		}
	}
	if i > 0 && end == i && len(s)-i <= 2 {
		return len(s) // what ends a train cannot be judged
	}
	return end
}

// stretches are parts of the series without a step of the clock. If held, packets that
// are suddenly late waited in the path: a limiter holds them.
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

// jumps are how often packets were suddenly late that came in no clump, and by how
// much at the most.
func (s series) jumps(service float64) (n int, most time.Duration) {
	var last *point
	for i := range s {
		if s[i].late {
			continue
		}
		if last != nil && sudden(last, &s[i], service) {
			n++
			most = max(most, time.Duration(s[i].owd-last.owd))
		}
		last = &s[i]
	}
	return n, most
}

// sudden tells whether a packet is later than the one before it by more than a queue
// grows meanwhile: cross traffic at twice the link's rate, and some packets.
func sudden(a, b *point, service float64) bool {
	return b.owd-a.owd > max(suddenly, suddenPackets*service+b.sent-a.sent)
}

// Constants, ours.
const (
	// A packet is suddenly late if it is so by suddenly ns, and by suddenPackets of the
	// tight link's time.
	suddenly      = 300e3
	suddenPackets = 8
	// A clump's packets come at less than clumpPace of the path's least distance, on
	// average (a sixth at 1 Gbit/s in the lab); it has gained clumpPackets and
	// clumpNoise at the least; and it ends where clumpSlack is lost again.
	clumpPace    = 0.6
	clumpPackets = 1.5
	clumpNoise   = 3e3
	clumpSlack   = 100e3
	// Packets that come within togetherPart of the least distance, less what two stamps are
	// off by, came together.
	togetherPart  = 0.5
	togetherNoise = 2e3
	// clockStep backwards is no path's doing.
	clockStep = 30e3
)
