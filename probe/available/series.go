package available

import (
	"cmp"
	"slices"

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
}

// series are a sample's packets, each once.
type series []point

// newSeries takes what can be taken of a sample: cut short, doubled or with numbers
// that were never sent. least is how far apart in ns the path lets two packets come.
func newSeries(s *probe.Sample, least, service float64) series {
	type packet struct {
		part  int
		frame float64
	}
	var packets []packet
	for i, p := range s.Parts {
		for range p.Count {
			packets = append(packets, packet{i, float64(p.Frame())})
		}
	}
	packets = packets[:min(len(packets), len(s.Sent))]
	seen := make([]bool, len(packets))
	var out series
	highest := -1
	for _, a := range s.Arrived {
		if a.Number < 0 || a.Number >= len(packets) || seen[a.Number] {
			continue
		}
		seen[a.Number] = true
		p := point{
			number: a.Number, part: packets[a.Number].part, frame: packets[a.Number].frame,
			sent: float64(s.Sent[a.Number] - s.Sent[0]), came: float64(a.At - s.Arrived[0].At), late: a.Number < highest,
		}
		p.owd = p.came - p.sent
		highest = max(highest, a.Number)
		out = append(out, p)
	}
	out.markClumps(least, service)
	slices.SortFunc(out, func(a, b point) int { return cmp.Compare(a.number, b.number) })
	return out
}

// markClumps finds what a receiver that had stood still took all at once: a packet
// that is suddenly later than the one before by more than a queue grows in that time,
// and all behind it that come closer together than the path lets them. Their stamps
// are the receiver's, not the path's. In the order of arrival.
func (s series) markClumps(least, service float64) {
	for i := 0; i < len(s); i++ {
		few := 8 // what comes first may have waited, too
		if i > 0 {
			few = 2
			if s[i].late || !sudden(&s[i-1], &s[i], service) {
				continue
			}
		}
		end := i + 1
		for end < len(s) && s[end].came-s[i].came < max(clumpNoise, float64(end-i)*least/2) {
			end++
		}
		// One that is late alone may be the queue's doing, or be the clock's: it is the
		// step that is left out, not the packet.
		if end-i >= few || i > 0 && end == len(s) {
			for j := i; j < end; j++ {
				s[j].late = true
			}
		}
		i = end - 1
	}
}

// stretches are parts of the series without a step of the clock.
func (s series) stretches(service float64) (out []series) {
	from := 0
	var last *point
	for i := range s {
		if s[i].late {
			continue
		}
		if last != nil {
			if sudden(last, &s[i], service) && !s[i-1].late || s[i].came < last.came-clockStep {
				out = append(out, s[from:i])
				from = i
			}
		}
		last = &s[i]
	}
	return append(out, s[from:])
}

// Constants, ours.
const (
	suddenly      = 150e3 // ns
	suddenPackets = 8
	clumpNoise    = 5e3
	clockStep     = 30e3
)

// sudden tells whether a packet is later than the one before it by more than a queue
// grows meanwhile: cross traffic at twice the link's rate, and some packets.
func sudden(a, b *point, service float64) bool {
	return b.owd-a.owd > max(suddenly, suddenPackets*service+b.sent-a.sent)
}
