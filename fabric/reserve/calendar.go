package reserve

import "math"

// calendar is the rate reserved on one directed link, as a step function of time. It never changes: add returns another
// calendar, which has most of its nodes in common with this one, so that a what-if is a copy of a pointer. The zero
// calendar is 0 at every moment. Moments are nanoseconds since 1970, and rates bit/s.
//
// It is a treap of the moments at which the rate changes (C. Aragon and R. Seidel, "Randomized search trees", FOCS 1989).
// A node has the change at its moment, not the rate, so that a reservation is two changes, however long it is. The
// priorities are a hash of the moments: the same function always has the same tree, in whatever order its reservations
// were added, and to remove one restores the tree exactly.
type calendar struct{ root *step }

// step is a change of the rate. here, sum, high and low are of its subtree: the total of the changes up to this one, and of
// all, and the greatest and the least of the sums from the first change to each. A step fills a line of the processor's
// cache (64 bytes), and a search reads the steps on its way alone.
type step struct {
	at, change           int64
	left, right          *step
	here, sum, high, low int64
}

// never is a moment after all others.
const never = math.MaxInt64

// add returns the calendar with rate more in [from, to). A negative rate removes what was added.
func (c calendar) add(from, to, rate int64) calendar {
	if from >= to || rate == 0 {
		return c
	}
	return calendar{c.root.add(from, rate).add(to, -rate)}
}

// level returns the rate at a moment.
func (c calendar) level(at int64) int64 {
	sum := int64(0)
	for s := c.root; s != nil; {
		if at < s.at {
			s = s.left
			continue
		}
		sum += s.here
		s = s.right
	}
	return sum
}

// highest returns the greatest rate in [from, to).
func (c calendar) highest(from, to int64) int64 {
	base := int64(0)
	for s := c.root; s != nil; {
		here := base + s.here
		switch {
		case s.at <= from:
			base, s = here, s.right
		case s.at >= to:
			s = s.left
		default:
			return max(here, s.left.highestFrom(base, from), s.right.highestBefore(here, to))
		}
	}
	return base
}

// earliest returns the first moment from which the rate is at most level for a duration, not before from. It takes as
// many steps down the tree as there are times on the way that are too short.
func (c calendar) earliest(from, duration, level int64) int64 {
	if level < 0 {
		return never
	}
	start := from
	if c.level(start) > level {
		start = c.root.firstWithin(0, start, level)
	}
	for {
		over := c.root.firstOver(0, start, level)
		if over == never || over-start >= duration {
			return start
		}
		start = c.root.firstWithin(0, over, level)
	}
}

// firstOver returns the first moment not before from at which the rate is above level, never if there is none.
func (c calendar) firstOver(from, level int64) int64 {
	if c.level(from) > level {
		return from
	}
	return c.root.firstOver(0, from, level)
}

// each calls f with each moment after which the rate is another one, in order, and that rate.
func (c calendar) each(f func(at, rate int64)) { c.root.each(0, f) }

func newStep(at, change int64, left, right *step) *step {
	here := left.total() + change
	s := &step{at: at, change: change, left: left, right: right, here: here, sum: here, high: here, low: here}
	if left != nil {
		s.high, s.low = max(s.high, left.high), min(s.low, left.low)
	}
	if right != nil {
		s.sum += right.sum
		s.high, s.low = max(s.high, here+right.high), min(s.low, here+right.low)
	}
	return s
}

func (s *step) total() int64 {
	if s == nil {
		return 0
	}
	return s.sum
}

// add returns the tree with a change more. Changes of one moment are added, and a sum of 0 is no step.
func (s *step) add(at, change int64) *step {
	switch {
	case s == nil:
		return newStep(at, change, nil, nil)
	case at == s.at && s.change+change == 0:
		return join(s.left, s.right)
	case at == s.at:
		return newStep(s.at, s.change+change, s.left, s.right)
	case at < s.at:
		l := s.left.add(at, change)
		if l != nil && priority(l.at) > priority(s.at) {
			return newStep(l.at, l.change, l.left, newStep(s.at, s.change, l.right, s.right))
		}
		return newStep(s.at, s.change, l, s.right)
	}
	r := s.right.add(at, change)
	if r != nil && priority(r.at) > priority(s.at) {
		return newStep(r.at, r.change, newStep(s.at, s.change, s.left, r.left), r.right)
	}
	return newStep(s.at, s.change, s.left, r)
}

// join returns the tree of two, of which all moments of the first are before those of the second.
func join(a, b *step) *step {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case priority(a.at) > priority(b.at):
		return newStep(a.at, a.change, a.left, join(a.right, b))
	}
	return newStep(b.at, b.change, join(a, b.left), b.right)
}

// priority is the finalizer of splitmix64 (G. Steele and others, "Fast splittable pseudorandom number generators", OOPSLA
// 2014). It maps no two moments to the same number.
func priority(at int64) uint64 {
	z := uint64(at) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// highestFrom returns the greatest rate from a moment on, up to the last step, where base is the rate before the subtree.
func (s *step) highestFrom(base, from int64) int64 {
	most := int64(math.MinInt64)
	for s != nil {
		here := base + s.here
		if s.at <= from {
			base, s = here, s.right
			continue
		}
		most = max(most, here)
		if s.right != nil {
			most = max(most, here+s.right.high)
		}
		s = s.left
	}
	return max(most, base) // base is the rate at the moment
}

// highestBefore returns the greatest rate at the steps before a moment.
func (s *step) highestBefore(base, before int64) int64 {
	most := int64(math.MinInt64)
	for s != nil {
		if s.at >= before {
			s = s.left
			continue
		}
		if s.left != nil {
			most = max(most, base+s.left.high)
		}
		base += s.here
		most = max(most, base)
		s = s.right
	}
	return most
}

// firstOver returns the first step after a moment at which the rate is above level.
func (s *step) firstOver(base, after, level int64) int64 {
	for s != nil && base+s.high > level {
		if s.at > after {
			if at := s.left.firstOver(base, after, level); at != never {
				return at
			}
		}
		base += s.here
		if s.at > after && base > level {
			return s.at
		}
		s = s.right
	}
	return never
}

// firstWithin returns the first step after a moment at which the rate is at most level.
func (s *step) firstWithin(base, after, level int64) int64 {
	for s != nil && base+s.low <= level {
		if s.at > after {
			if at := s.left.firstWithin(base, after, level); at != never {
				return at
			}
		}
		base += s.here
		if s.at > after && base <= level {
			return s.at
		}
		s = s.right
	}
	return never
}

func (s *step) each(base int64, f func(at, rate int64)) {
	if s == nil {
		return
	}
	s.left.each(base, f)
	base += s.here
	f(s.at, base)
	s.right.each(base, f)
}
