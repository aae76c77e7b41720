package available

import "math"

// interval is the time between two packets during which the tight link was busy.
type interval struct {
	bits   float64
	gap    float64 // ns, at the sender
	growth float64 // ns, growth of the delay
	queue  float64 // ns, queue delay at the begin
}

// busy returns the intervals of a stretch in which the tight link cannot have been idle:
// the backlog at the begin and the packet itself (service) took longer to serve than the
// next packet took to arrive. That depends only on what happened before the interval, so
// that the selection has no bias towards more or less cross traffic. Packets before
// number from are left out.
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
		// It is unknown whether the link carried a packet that was lost.
		if packets == i-last && lasts > b.sent-by.sent+stampNoise {
			out = append(out, interval{bits: 8 * b.frame * float64(packets), gap: b.sent - a.sent, growth: b.owd - a.owd, queue: a.owd - base})
		}
		before, last = last, i
	}
	return out
}

// base returns the minimum delay.
func (s series) base() float64 {
	base := math.Inf(1)
	for i := range s {
		if !s[i].late {
			base = math.Min(base, s[i].owd)
		}
	}
	return base
}

// endsInStall reports whether the receiver stalled before the queue had drained. The
// remaining delay may be from another link whose queue the head of the train filled, too.
func (s series) endsInStall(busy []interval) bool {
	if len(busy) == 0 || !s[len(s)-1].late {
		return false
	}
	maxQueue := 0.0
	for _, i := range busy {
		maxQueue = math.Max(maxQueue, i.queue)
	}
	last := busy[len(busy)-1]
	return last.queue+last.growth > maxQueue/2
}

// sums are totals of intervals.
type sums struct{ packets, bits, gap, growth float64 }

func (s *sums) add(i interval) {
	s.packets++
	s.bits += i.bits
	s.gap += i.gap
	s.growth += i.growth
}

// plus adds o with a weight.
func (s sums) plus(o sums, weight float64) sums {
	return sums{s.packets + weight*o.packets, s.bits + weight*o.bits, s.gap + weight*o.gap, s.growth + weight*o.growth}
}

// available returns, in bit/s, what passed through a link with the given rate: what
// arrived less the growth of the queue, divided by the time.
func (s sums) available(rate float64) float64 {
	return (s.bits*1e9 - rate*s.growth) / s.gap
}
