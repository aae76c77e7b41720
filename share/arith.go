package share

import "math/bits"

// mulDiv is a*b/c rounded down, for results that fit 64 bits.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// amount is a rate to 2^-64 bit/s. What a division leaves over is kept through all
// levels of a tree and rounded once at the end: rounded at every level, the bits of
// many claims can add up in one.
type amount struct{ whole, part uint64 }

func exactly(v uint64) amount { return amount{whole: v} }

func (a amount) plus(b amount) amount {
	part, carry := bits.Add64(a.part, b.part, 0)
	return amount{a.whole + b.whole + carry, part}
}

func (a amount) minus(b amount) amount {
	part, borrow := bits.Sub64(a.part, b.part, 0)
	return amount{a.whole - b.whole - borrow, part}
}

func (a amount) less(b amount) bool {
	return a.whole < b.whole || a.whole == b.whole && a.part < b.part
}

// times is a*f in 192 bits.
func (a amount) times(f uint64) (hi, mid, lo uint64) {
	carry, lo := bits.Mul64(a.part, f)
	hi, mid = bits.Mul64(a.whole, f)
	mid, carry = bits.Add64(mid, carry, 0)
	return hi + carry, mid, lo
}

// mulDiv is a*b/c rounded down, for b up to c.
func (a amount) mulDiv(b, c uint64) amount {
	hi, mid, lo := a.times(b)
	whole, rest := bits.Div64(hi, mid, c)
	part, _ := bits.Div64(rest, lo, c)
	return amount{whole, part}
}

// within tells whether a/b is at most c/d, exactly.
func within(a amount, b uint64, c amount, d uint64) bool {
	hi1, mid1, lo1 := a.times(d)
	hi2, mid2, lo2 := c.times(b)
	if hi1 != hi2 {
		return hi1 < hi2
	}
	return mid1 < mid2 || mid1 == mid2 && lo1 <= lo2
}

// splitter hands out total in proportion to weights that sum up to sum. Each part
// is the difference of two rounded running totals, so together they are total, and
// whatever is a multiple of 2^-64 bit/s is exact.
type splitter struct {
	total  amount
	sum    uint64
	seen   uint64
	handed amount
}

func (s *splitter) next(weight uint64) amount {
	if weight == 0 {
		return amount{} // also keeps an all-zero split from dividing by zero
	}
	s.seen += weight
	upTo := s.total.mulDiv(s.seen, s.sum)
	part := upTo.minus(s.handed)
	s.handed = upTo
	return part
}
