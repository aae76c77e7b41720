package share

import (
	"math/big"

	"headgate.dev/headgate/unit"
)

// The oracle for AllocateLinks, for claims without children, uses exact fractions: all claims
// that want more rise at the speed of their weights until one must stop, repeatedly. Every sum
// is recomputed.

func oracleLinks(capacities []unit.Rate, spare Spare, claims []Claim) []*big.Rat {
	n := len(claims)
	has, own, want := make([]*big.Rat, n), make([]*big.Rat, n), make([]*big.Rat, n)
	weights, own0 := make([]uint64, n), []int{}
	for i := range claims {
		has[i], own[i], want[i] = rat(0), oracleOwn(i, claims), oracleWant(i, claims)
		if own[i].Sign() > 0 {
			weights[i] = own[i].Num().Uint64() // an integer
			own0 = append(own0, i)
		}
	}
	oracleRaise(capacities, claims, own0, weights, has, own)
	for {
		// Of the claims that can rise, those that are served next.
		var now []int
		for i := range claims {
			if has[i].Cmp(want[i]) >= 0 || oracleFull(capacities, claims, has, i) {
				continue
			}
			if turn := oracleTurn(i, spare, claims); len(now) > 0 && turn != oracleTurn(now[0], spare, claims) {
				if turn > oracleTurn(now[0], spare, claims) {
					continue
				}
				now = nil
			}
			now = append(now, i)
			weights[i] = oracleWeight(i, spare, claims)
		}
		if len(now) == 0 {
			return has
		}
		oracleRaise(capacities, claims, now, weights, has, want)
	}
}

// oracleRaise raises the claims in who, at the speed of their weights, from their present rates
// to at most the rates in most.
func oracleRaise(capacities []unit.Rate, claims []Claim, who []int, weights []uint64, has, most []*big.Rat) {
	for {
		var now []int
		for _, i := range who {
			if has[i].Cmp(most[i]) < 0 && !oracleFull(capacities, claims, has, i) {
				now = append(now, i)
			}
		}
		if len(now) == 0 {
			return
		}
		var rise *big.Rat
		lower := func(room *big.Rat, weight uint64) {
			if r := new(big.Rat).Quo(room, rat(weight)); rise == nil || r.Cmp(rise) < 0 {
				rise = r
			}
		}
		for _, i := range now {
			lower(new(big.Rat).Sub(most[i], has[i]), weights[i])
		}
		for l := range capacities {
			var sum uint64
			for _, i := range now {
				if oracleCrosses(claims[i], l) {
					sum += weights[i]
				}
			}
			if sum > 0 {
				lower(oracleLeft(capacities, claims, has, l), sum)
			}
		}
		for _, i := range now {
			has[i] = new(big.Rat).Add(has[i], new(big.Rat).Mul(rise, rat(weights[i])))
		}
	}
}

func oracleCrosses(c Claim, link int) bool {
	for _, l := range c.Links {
		if l == link {
			return true
		}
	}
	return false
}

func oracleLeft(capacities []unit.Rate, claims []Claim, has []*big.Rat, link int) *big.Rat {
	left := rat(uint64(capacities[link]))
	for i, c := range claims {
		if oracleCrosses(c, link) {
			left.Sub(left, has[i])
		}
	}
	return left
}

func oracleFull(capacities []unit.Rate, claims []Claim, has []*big.Rat, i int) bool {
	for l := range capacities {
		if oracleCrosses(claims[i], l) && oracleLeft(capacities, claims, has, l).Sign() <= 0 {
			return true
		}
	}
	return false
}
