package available

import "math"

// interval is from one packet to the next while the tight link was busy throughout.
type interval struct {
	bits   float64
	gap    float64 // ns, at the sender
	growth float64 // ns, of the delay
	queue  float64 // ns, at its begin
}

// busy are the intervals of a stretch in which the tight link cannot have been idle:
// what waited at the begin, and the packet itself (service), took longer to serve than
// the next one took to come. That depends on what was before an interval alone, so
// that cross traffic did no more and no less in those than in others. What comes
// before packet from is left out.
func (s series) busy(from int, service float64) (out []interval) {
	base := s.base()
	before, last := -1, -1
	for i := range s {
		if s[i].late || s[i].number < from {
			continue
		}
		if last < 0 {
			before, last = i, i
			continue
		}
		by, a, b := &s[before], &s[last], &s[i]
		packets := b.number - a.number
		lasts := by.owd - base + service*float64(b.number-by.number)
		// Of a packet that never came it is not known whether it was carried.
		if packets == i-last && lasts > b.sent-by.sent+stampNoise {
			out = append(out, interval{bits: 8 * b.frame * float64(packets), gap: b.sent - a.sent, growth: b.owd - a.owd, queue: a.owd - base})
		}
		before, last = last, i
	}
	return out
}

// base is the least delay.
func (s series) base() float64 {
	base := math.Inf(1)
	for i := range s {
		if !s[i].late {
			base = math.Min(base, s[i].owd)
		}
	}
	return base
}

// cutShort tells whether the receiver stood still before the queue had drained. The
// delay that is left would be called the tight link's, and may be another's that the
// train's head filled, too.
func (s series) cutShort(busy []interval) bool {
	if len(busy) == 0 || !s[len(s)-1].late {
		return false
	}
	most := 0.0
	for _, i := range busy {
		most = math.Max(most, i.queue)
	}
	last := busy[len(busy)-1]
	return last.queue+last.growth > most/2
}

// sums are those of intervals.
type sums struct{ packets, bits, gap, growth float64 }

func (s *sums) add(i interval) {
	s.packets++
	s.bits += i.bits
	s.gap += i.gap
	s.growth += i.growth
}

// plus is both together, the other with a weight.
func (s sums) plus(o sums, weight float64) sums {
	return sums{s.packets + weight*o.packets, s.bits + weight*o.bits, s.gap + weight*o.gap, s.growth + weight*o.growth}
}

// available is what went through a link of a rate, in bit/s: what came to it, less
// what its queue grew by, in the time.
func (s sums) available(rate float64) float64 {
	return (s.bits*1e9 - rate*s.growth) / s.gap
}
