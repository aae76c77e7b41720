package share

import (
	"math/big"

	"headgate/unit"
)

// The oracle for Allocate: real numbers as fractions, the tree walked by searching
// all claims for children, and water filled by freezing: raise every leaf that may
// borrow at the speed of its weight, until somebody has enough, a ceiling above
// somebody is reached or the lender has no more; look again who may borrow, go on.
// Every sum is added up anew. Slow, and hard to get wrong.

type oracle struct {
	spare  Spare
	claims []Claim
	has    []*big.Rat // what a leaf has so far
	own    []*big.Rat // what a claim has of guarantees
}

func oracleAllocate(limit unit.Rate, spare Spare, claims []Claim) []*big.Rat {
	o := newOracle(limit, spare, claims)
	o.lend(rat(uint64(limit)), -1)
	return o.totals()
}

// newOracle gives everyone the guarantees, and nothing is lent yet.
func newOracle(limit unit.Rate, spare Spare, claims []Claim) *oracle {
	o := &oracle{spare: spare, claims: claims, has: make([]*big.Rat, len(claims)), own: make([]*big.Rat, len(claims))}
	for i := range claims {
		o.has[i], o.own[i] = rat(0), rat(0)
	}
	o.entitle(rat(uint64(limit)), -1)
	return o
}

func (o *oracle) entitle(has *big.Rat, parent int) {
	kids := oracleChildren(parent, o.claims)
	total := rat(0)
	for _, k := range kids {
		o.own[k] = least(oracleWant(k, o.claims), rat(uint64(o.claims[k].Guarantee)))
		total.Add(total, o.own[k])
	}
	for _, k := range kids {
		if total.Cmp(has) > 0 {
			o.own[k] = new(big.Rat).Quo(new(big.Rat).Mul(o.own[k], has), total)
		}
		if len(oracleChildren(k, o.claims)) == 0 {
			o.has[k] = o.own[k]
		}
		o.entitle(o.own[k], k)
	}
}

// lend lends at all claims below the lender, and then the lender's own.
func (o *oracle) lend(has *big.Rat, lender int) {
	for _, k := range oracleChildren(lender, o.claims) {
		o.lend(o.own[k], k)
	}
	if lender >= 0 && len(oracleChildren(lender, o.claims)) == 0 {
		return
	}
	for {
		left := new(big.Rat).Sub(has, o.total(lender))
		now := o.borrowers(lender)
		if left.Sign() <= 0 || len(now) == 0 {
			return
		}
		// How far can they rise before the first of them must stop?
		rise := new(big.Rat).Quo(left, o.weight(now))
		for _, i := range now {
			room := new(big.Rat).Sub(rat(uint64(o.claims[i].Demand)), o.has[i])
			rise = least(rise, room.Quo(room, o.weight([]int{i})))
		}
		for c := range o.claims {
			var under []int
			for _, i := range now {
				if o.isIn(i, c) {
					under = append(under, i)
				}
			}
			if len(under) > 0 {
				room := new(big.Rat).Sub(oracleCeiling(c, o.claims), o.total(c))
				rise = least(rise, room.Quo(room, o.weight(under)))
			}
		}
		for _, i := range now {
			o.has[i] = new(big.Rat).Add(o.has[i], new(big.Rat).Mul(rise, o.weight([]int{i})))
		}
	}
}

// borrowers are the leaves below the lender that want more, with no full ceiling
// at or above them, and of these the ones whose turn it is.
func (o *oracle) borrowers(lender int) (now []int) {
	for i := range o.claims {
		if len(oracleChildren(i, o.claims)) > 0 || !o.isIn(i, lender) || o.has[i].Cmp(rat(uint64(o.claims[i].Demand))) >= 0 {
			continue
		}
		bound := false
		for c := i; c >= 0; c = o.claims[c].Parent {
			bound = bound || o.total(c).Cmp(oracleCeiling(c, o.claims)) >= 0
		}
		if bound {
			continue
		}
		if len(now) > 0 && oracleTurn(i, o.spare, o.claims) < oracleTurn(now[0], o.spare, o.claims) {
			now = nil
		}
		if len(now) == 0 || oracleTurn(i, o.spare, o.claims) == oracleTurn(now[0], o.spare, o.claims) {
			now = append(now, i)
		}
	}
	return now
}

// isIn tells whether claim i is c or below it; all are below -1.
func (o *oracle) isIn(i, c int) bool {
	for ; i != c; i = o.claims[i].Parent {
		if i < 0 {
			return false
		}
	}
	return true
}

func (o *oracle) total(c int) *big.Rat {
	sum := rat(0)
	for i := range o.claims {
		if o.isIn(i, c) {
			sum.Add(sum, o.has[i])
		}
	}
	return sum
}

func (o *oracle) totals() (all []*big.Rat) {
	for c := range o.claims {
		all = append(all, o.total(c))
	}
	return all
}

func (o *oracle) weight(leaves []int) *big.Rat {
	sum := rat(0)
	for _, i := range leaves {
		sum.Add(sum, rat(oracleWeight(i, o.spare, o.claims)))
	}
	return sum
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
