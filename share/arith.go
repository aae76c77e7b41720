package share

import "math/bits"

// mulDiv returns a*b/c rounded down. The result must fit in 64 bits.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// amount is a rate with a resolution of 2^-64 bit/s. The fractions of divisions are kept
// through all levels of a tree and rounded once at the end. If amounts were rounded at every
// level, the errors of many claims could add up in one claim.
type amount struct{ whole, part uint64 }

func newAmount(v uint64) amount { return amount{whole: v} }

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

// times returns a*f as a 192-bit number.
func (a amount) times(f uint64) (hi, mid, lo uint64) {
	carry, lo := bits.Mul64(a.part, f)
	hi, mid = bits.Mul64(a.whole, f)
	mid, carry = bits.Add64(mid, carry, 0)
	return hi + carry, mid, lo
}

// mulDiv returns a*b/c rounded down, where b must not exceed c.
func (a amount) mulDiv(b, c uint64) amount {
	hi, mid, lo := a.times(b)
	whole, rest := bits.Div64(hi, mid, c)
	part, _ := bits.Div64(rest, lo, c)
	return amount{whole, part}
}

// ratioLessEqual reports whether a/b <= c/d, exactly.
func ratioLessEqual(a amount, b uint64, c amount, d uint64) bool {
	hi1, mid1, lo1 := a.times(d)
	hi2, mid2, lo2 := c.times(b)
	if hi1 != hi2 {
		return hi1 < hi2
	}
	return mid1 < mid2 || mid1 == mid2 && lo1 <= lo2
}

// splitter divides total in proportion to weights whose sum is sum. Each part is the difference
// of two rounded running totals, so the parts add up to total, and multiples of 2^-64 bit/s are
// exact.
type splitter struct {
	total     amount
	sum       uint64
	seen      uint64
	allocated amount
}

func (s *splitter) next(weight uint64) amount {
	if weight == 0 {
		return amount{} // also avoids a division by zero if all weights are zero
	}
	s.seen += weight
	upTo := s.total.mulDiv(s.seen, s.sum)
	part := upTo.minus(s.allocated)
	s.allocated = upTo
	return part
}
