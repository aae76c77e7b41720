package share

import "math/bits"

// mulDiv is a*b/c rounded down, for results that fit 64 bits.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// cmpProducts compares a*b with c*d, exactly.
func cmpProducts(a, b, c, d uint64) int {
	hi1, lo1 := bits.Mul64(a, b)
	hi2, lo2 := bits.Mul64(c, d)
	switch {
	case hi1 < hi2 || hi1 == hi2 && lo1 < lo2:
		return -1
	case hi1 == hi2 && lo1 == lo2:
		return 0
	}
	return 1
}

// splitter hands out total in proportion to weights that sum up to sum. Each
// part is the difference of two rounded running totals, so every part is within
// one of exact and together they are total: what rounding takes from one claim
// goes to a later one of the same level.
type splitter struct {
	total, sum   uint64
	seen, handed uint64
}

func (s *splitter) next(weight uint64) uint64 {
	if weight == 0 {
		return 0 // also keeps an all-zero split from dividing by zero
	}
	s.seen += weight
	upTo := mulDiv(s.total, s.seen, s.sum)
	part := upTo - s.handed
	s.handed = upTo
	return part
}
