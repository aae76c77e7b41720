package share

import (
	"math/big"

	"headgate.dev/headgate/unit"
)

// The oracle for Allocate uses exact fractions, walks the tree by searching all claims for
// children, and fills water by freezing: the rates of all claims that want more rise at the
// speed of their weights until one is satisfied or the bandwidth is used up; then the search
// for claims that want more restarts. Every sum is recomputed. The oracle is slow and simple.

func oracleAllocate(limit unit.Rate, spare Spare, claims []Claim) []*big.Rat {
	has := make([]*big.Rat, len(claims))
	for i := range has {
		has[i] = rat(0) // for claims in a cycle
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
		// The rise at which the first of them is satisfied.
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

// oracleBorrowers returns the claims that want more, limited to those that are served next.
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

// oracleOwn returns the part of its guarantee that a claim uses.
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
