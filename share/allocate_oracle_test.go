package share

import (
	"math/big"

	"headgate/unit"
)

// The oracle for Allocate: real numbers as fractions, the tree walked by searching
// all claims for children, and water filled by freezing: raise everyone who wants more at
// the speed of the weights, until somebody has enough or there is no more; look again who
// wants more, go on. Every sum is added up anew. Slow, and hard to get wrong.

func oracleAllocate(limit unit.Rate, spare Spare, claims []Claim) []*big.Rat {
	has := make([]*big.Rat, len(claims))
	for i := range has {
		has[i] = rat(0) // of a circle
	}
	oracleDivide(rat(uint64(limit)), -1, spare, claims, has)
	return has
}

func oracleDivide(of *big.Rat, parent int, spare Spare, claims []Claim, has []*big.Rat) {
	kids := oracleChildren(parent, claims)
	total := rat(0)
	for _, k := range kids {
		has[k] = oracleOwn(k, claims)
		total.Add(total, has[k])
	}
	if total.Cmp(of) > 0 {
		for _, k := range kids {
			has[k] = new(big.Rat).Quo(new(big.Rat).Mul(has[k], of), total)
		}
	}
	for {
		left := new(big.Rat).Set(of)
		for _, k := range kids {
			left.Sub(left, has[k])
		}
		now := oracleBorrowers(kids, spare, claims, has)
		if left.Sign() <= 0 || len(now) == 0 {
			break
		}
		// How far can they rise before the first of them must stop?
		weights := rat(0)
		for _, k := range now {
			weights.Add(weights, rat(oracleWeight(k, spare, claims)))
		}
		rise := new(big.Rat).Quo(left, weights)
		for _, k := range now {
			room := new(big.Rat).Sub(oracleWant(k, claims), has[k])
			rise = least(rise, room.Quo(room, rat(oracleWeight(k, spare, claims))))
		}
		for _, k := range now {
			has[k] = new(big.Rat).Add(has[k], new(big.Rat).Mul(rise, rat(oracleWeight(k, spare, claims))))
		}
	}
	for _, k := range kids {
		oracleDivide(has[k], k, spare, claims, has)
	}
}

// oracleBorrowers are those that want more, and of these the ones whose turn it is.
func oracleBorrowers(kids []int, spare Spare, claims []Claim, has []*big.Rat) (now []int) {
	for _, k := range kids {
		if has[k].Cmp(oracleWant(k, claims)) >= 0 {
			continue
		}
		if len(now) > 0 && oracleTurn(k, spare, claims) < oracleTurn(now[0], spare, claims) {
			now = nil
		}
		if len(now) == 0 || oracleTurn(k, spare, claims) == oracleTurn(now[0], spare, claims) {
			now = append(now, k)
		}
	}
	return now
}

// oracleOwn is what a claim uses of its guarantee.
func oracleOwn(i int, claims []Claim) *big.Rat {
	return least(oracleWant(i, claims), rat(uint64(claims[i].Guarantee)))
}

func oracleTurn(i int, spare Spare, claims []Claim) int {
	switch {
	case spare == Priority:
		return claims[i].Priority
	case spare == Proportional && claims[i].Weight == 0:
		return 1
	}
	return 0
}

func oracleWeight(i int, spare Spare, claims []Claim) uint64 {
	if spare != Proportional || claims[i].Weight == 0 {
		return 1
	}
	return min(claims[i].Weight, uint64(unit.MaxRate))
}

func oracleCeiling(i int, claims []Claim) *big.Rat {
	return rat(min(uint64(claims[i].Ceiling), uint64(unit.MaxRate)))
}

func oracleWant(i int, claims []Claim) *big.Rat {
	want := rat(uint64(claims[i].Demand))
	if kids := oracleChildren(i, claims); len(kids) > 0 {
		want = rat(0)
		for _, k := range kids {
			want.Add(want, oracleWant(k, claims))
		}
	}
	return least(want, oracleCeiling(i, claims))
}

func oracleChildren(parent int, claims []Claim) (kids []int) {
	for i, c := range claims {
		if c.Parent == parent {
			kids = append(kids, i)
		}
	}
	return kids
}

func rat(v uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(v)) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}
