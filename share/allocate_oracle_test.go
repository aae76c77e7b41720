package share

import (
	"math/big"

	"headgate/unit"
)

// The oracle for Allocate: real numbers as fractions, the tree walked by
// searching all claims for children, and water filled by freezing: raise everyone
// at the speed of its weight until somebody is full, take that one out, go on.
// Slow, and hard to get wrong.

func oracleAllocate(limit unit.Rate, spare Spare, claims []Claim) []*big.Rat {
	got := make([]*big.Rat, len(claims))
	for i := range got {
		got[i] = rat(0)
	}
	oracleLevel(rat(uint64(limit)), -1, spare, claims, got)
	return got
}

func oracleLevel(limit *big.Rat, parent int, spare Spare, claims []Claim, got []*big.Rat) {
	kids := oracleChildren(parent, claims)
	first := map[int]*big.Rat{}
	total := rat(0)
	for _, k := range kids {
		first[k] = least(oracleWant(k, claims), rat(uint64(claims[k].Guarantee)))
		total.Add(total, first[k])
	}
	for _, k := range kids {
		got[k] = first[k]
		if total.Cmp(limit) > 0 {
			got[k] = new(big.Rat).Quo(new(big.Rat).Mul(first[k], limit), total)
		}
	}
	if left := new(big.Rat).Sub(limit, total); left.Sign() > 0 {
		for len(kids) > 0 {
			var now, later []int
			now, later = oracleFirstTurn(kids, spare, claims)
			left = oracleFill(left, now, spare, claims, got)
			kids = later
		}
	}
	for _, k := range oracleChildren(parent, claims) {
		oracleLevel(got[k], k, spare, claims, got)
	}
}

func oracleFill(left *big.Rat, kids []int, spare Spare, claims []Claim, got []*big.Rat) *big.Rat {
	for {
		// Who still wants, and how far can the water rise before somebody is full?
		var hungry []int
		weights := rat(0)
		var rise *big.Rat
		for _, k := range kids {
			room := new(big.Rat).Sub(oracleWant(k, claims), got[k])
			if room.Sign() <= 0 {
				continue
			}
			hungry = append(hungry, k)
			w := oracleWeight(k, spare, claims)
			weights.Add(weights, w)
			if r := new(big.Rat).Quo(room, w); rise == nil || r.Cmp(rise) < 0 {
				rise = r
			}
		}
		if len(hungry) == 0 || left.Sign() == 0 {
			return left
		}
		rise = least(rise, new(big.Rat).Quo(left, weights))
		for _, k := range hungry {
			part := new(big.Rat).Mul(rise, oracleWeight(k, spare, claims))
			got[k] = new(big.Rat).Add(got[k], part)
			left = new(big.Rat).Sub(left, part)
		}
	}
}

func oracleFirstTurn(kids []int, spare Spare, claims []Claim) (now, later []int) {
	turn := func(k int) int {
		switch {
		case spare == Priority:
			return claims[k].Priority
		case spare == Proportional && claims[k].Weight == 0:
			return 1
		}
		return 0
	}
	best := turn(kids[0])
	for _, k := range kids {
		best = min(best, turn(k))
	}
	for _, k := range kids {
		if turn(k) == best {
			now = append(now, k)
		} else {
			later = append(later, k)
		}
	}
	return now, later
}

func oracleWeight(k int, spare Spare, claims []Claim) *big.Rat {
	if spare != Proportional || claims[k].Weight == 0 {
		return rat(1)
	}
	return rat(min(claims[k].Weight, uint64(unit.MaxRate)))
}

func oracleWant(i int, claims []Claim) *big.Rat {
	want := rat(uint64(claims[i].Demand))
	if kids := oracleChildren(i, claims); len(kids) > 0 {
		want = rat(0)
		for _, k := range kids {
			want.Add(want, oracleWant(k, claims))
		}
	}
	return least(want, least(rat(uint64(claims[i].Ceiling)), rat(uint64(unit.MaxRate))))
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
