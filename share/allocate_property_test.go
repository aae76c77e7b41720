package share

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// problem is one random call of Allocate. Values are small as often as large, so that ties,
// zeros, remainders and possible overflows occur.
type problem struct {
	limit  unit.Rate
	spare  Spare
	claims []Claim
}

func drawProblem(t *rapid.T) problem {
	most := rapid.SampledFrom([]uint64{7, 1000, uint64(100 * unit.Mbit), uint64(unit.MaxRate)}).Draw(t, "scale")
	value := rapid.OneOf(rapid.Uint64Range(0, most), rapid.Uint64Range(0, min(most, 5)), rapid.Just(uint64(unit.MaxRate)))
	p := problem{
		limit: unit.Rate(rapid.OneOf(rapid.Uint64Range(0, most), rapid.Uint64Range(0, 10*most)).Draw(t, "limit")),
		spare: rapid.SampledFrom([]Spare{Proportional, Equal, Priority}).Draw(t, "spare"),
	}
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 11, 14}).Draw(t, "claims") // values of a range would mostly be small
	depths := make([]int, n)
	for i := range n {
		c := Claim{
			Parent:    -1,
			Guarantee: unit.Rate(value.Draw(t, "guarantee")),
			Ceiling:   unit.Rate(value.Draw(t, "ceiling")),
			Weight:    rapid.OneOf(value, rapid.Uint64Range(0, 3)).Draw(t, "weight"),
			Priority:  rapid.IntRange(-1, 2).Draw(t, "priority"),
			Demand:    unit.Rate(value.Draw(t, "demand")),
		}
		if rapid.Bool().Draw(t, "open") {
			c.Ceiling = unit.MaxRate
		}
		if i > 0 && rapid.Bool().Draw(t, "child") {
			if parent := rapid.IntRange(0, i-1).Draw(t, "parent"); depths[parent] < 3 {
				c.Parent, depths[i] = parent, depths[parent]+1
			}
		}
		p.claims = append(p.claims, c)
	}
	if rapid.Bool().Draw(t, "fitting") {
		p.fit()
	}
	return p
}

// fit raises the guarantee of every parent to at least the sum of its children's guarantees,
// and the limit to at least the sum of the top-level guarantees, as in a validated
// configuration.
func (p *problem) fit() {
	var tops uint64
	for i := len(p.claims) - 1; i >= 0; i-- { // children follow their parents
		g := uint64(p.claims[i].Guarantee)
		if kids := oracleChildren(i, p.claims); len(kids) > 0 {
			var sum uint64
			for _, k := range kids {
				sum += uint64(p.claims[k].Guarantee)
			}
			p.claims[i].Guarantee = unit.Rate(max(g, sum))
		}
		if p.claims[i].Parent < 0 {
			tops += uint64(p.claims[i].Guarantee)
		}
	}
	p.limit = max(p.limit, unit.Rate(tops))
}

// shuffled returns the same tree with the claims in another order; at[i] is the new index of
// claim i.
func (p problem) shuffled(t *rapid.T) (q problem, at []int) {
	at = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Perm(len(p.claims))
	q = p
	q.claims = make([]Claim, len(p.claims))
	for i, c := range p.claims {
		if c.Parent >= 0 {
			c.Parent = at[c.Parent]
		}
		q.claims[at[i]] = c
	}
	return q, at
}

func (p problem) allocate() []unit.Rate { return Allocate(p.limit, p.spare, p.claims) }

func (p problem) isLeaf(i int) bool { return len(oracleChildren(i, p.claims)) == 0 }

// TestAllocateMatchesOracle: every rate is the oracle's exact number, rounded down or up.
func TestAllocateMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compareWithOracle(t, drawProblem(t))
	})
}

func compareWithOracle(t rapid.TB, p problem) {
	got, want := p.allocate(), oracleAllocate(p.limit, p.spare, p.claims)
	for i := range got {
		off := new(big.Rat).Sub(rat(uint64(got[i])), want[i])
		if off.Abs(off).Cmp(rat(1)) >= 0 {
			t.Fatalf("claim %d gets %d, want %s (limit %d, %v, %+v)", i, got[i], want[i].FloatString(3), p.limit, p.spare, p.claims)
		}
	}
}

// TestAllocateMatchesOracleInLargeTree: rounding errors do not add up in a larger tree with
// guarantees that leave thirds and sevenths everywhere, and with some ceilings that are
// reached.
func TestAllocateMatchesOracleInLargeTree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, spare := range []Spare{Proportional, Equal, Priority} {
		p := problem{limit: 10007, spare: spare}
		for range 25 {
			vm := len(p.claims)
			p.claims = append(p.claims, Claim{Parent: -1, Guarantee: 331, Ceiling: unit.Rate(350 + rnd.IntN(200))})
			for range 4 {
				g := unit.Rate(rnd.IntN(80))
				p.claims = append(p.claims, Claim{Parent: vm, Guarantee: g, Ceiling: unit.MaxRate, Weight: uint64(g) + 3, Priority: rnd.IntN(3), Demand: unit.Rate(rnd.IntN(300))})
			}
		}
		compareWithOracle(t, p)
	}
}

// TestAllocateInvariants checks the documented guarantees of Allocate to the bit.
func TestAllocateInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := p.allocate()
		want := make([]uint64, len(p.claims))
		for i := range want {
			want[i] = oracleWant(i, p.claims).Num().Uint64()
			if uint64(got[i]) > want[i] {
				t.Fatalf("claim %d gets %d, above its demand or ceiling of %d", i, got[i], want[i])
			}
		}
		checkSums(t, p, got, want)
		checkGuarantees(t, p, uint64(p.limit), -1, got, want)
		for i := range p.claims {
			if p.isLeaf(i) && got[i] < p.claims[i].Demand && !bound(p, i, got) && sum(got, oracleChildren(-1, p.claims)) != uint64(p.limit) {
				t.Fatalf("claim %d wants more than %d and has not reached a ceiling, but not all of %d is allocated: %d", i, got[i], p.limit, got)
			}
		}
	})
}

func sum[N ~uint64](of []N, at []int) (sum uint64) {
	for _, i := range at {
		sum += uint64(of[i])
	}
	return sum
}

// checkSums checks that the whole limit or the whole demand is allocated, and that the rate of
// a parent is the sum of its children's rates.
func checkSums(t *rapid.T, p problem, got []unit.Rate, want []uint64) {
	tops := oracleChildren(-1, p.claims)
	if handed, wanted := sum(got, tops), sum(want, tops); handed != min(uint64(p.limit), wanted) {
		t.Fatalf("%d of %d are allocated, and the demand is %d", handed, p.limit, wanted)
	}
	for i := range p.claims {
		if kids := oracleChildren(i, p.claims); len(kids) > 0 && sum(got, kids) != uint64(got[i]) {
			t.Fatalf("claim %d gets %d, and its children get %d", i, got[i], sum(got, kids))
		}
	}
}

// checkGuarantees checks that every claim gets its guarantee if the guarantees of its level fit
// the parent's. For a parent claim this implies that unused guarantees of its children are lent
// to the claims below it first.
func checkGuarantees(t *rapid.T, p problem, has uint64, parent int, got []unit.Rate, want []uint64) {
	var all uint64
	own := func(i int) uint64 { return min(want[i], uint64(p.claims[i].Guarantee)) }
	for _, i := range oracleChildren(parent, p.claims) {
		all += own(i)
	}
	if all > has {
		return
	}
	for _, i := range oracleChildren(parent, p.claims) {
		if uint64(got[i]) < own(i) {
			t.Fatalf("claim %d gets %d, less than its guarantee of %d although all guarantees fit", i, got[i], p.claims[i].Guarantee)
		}
		checkGuarantees(t, p, own(i), i, got, want)
	}
}

// bound reports whether claim i or a claim above it has reached its ceiling.
func bound(p problem, i int, got []unit.Rate) bool {
	for c := i; c >= 0; c = p.claims[c].Parent {
		if got[c] >= p.claims[c].Ceiling {
			return true
		}
	}
	return false
}

// TestAllocateFairness checks weighted fairness: among the claims that borrow from one parent,
// none has borrowed more per weight than a claim that still wants more.
func TestAllocateFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.fit()
		got := p.allocate()
		for parent := -1; parent < len(p.claims); parent++ {
			kids := oracleChildren(parent, p.claims)
			own := make([]uint64, len(p.claims))
			for _, k := range kids {
				own[k] = oracleOwn(k, p.claims).Num().Uint64()
			}
			if parent >= 0 && sum(own, kids) > uint64(got[parent]) {
				continue // the ceiling is below the guarantee
			}
			borrowed := make([]uint64, len(p.claims))
			for _, k := range kids {
				if uint64(got[k])+1 < own[k] {
					t.Fatalf("claim %d gets %d of its guarantee %d", k, got[k], own[k])
				}
				borrowed[k] = max(uint64(got[k]), own[k]) - own[k]
			}
			for _, i := range kids {
				for _, j := range kids {
					if uint64(got[i]) < oracleWant(i, p.claims).Num().Uint64() && !fair(p, i, j, borrowed) {
						t.Fatalf("claim %d wants more than %d while claim %d borrows %d (limit %d, %v, %+v)", i, got[i], j, borrowed[j], p.limit, p.spare, p.claims)
					}
				}
			}
		}
	})
}

// fair reports whether i has borrowed at least as much per weight as j. Both amounts are
// differences of two rounded rates, so each can be off by less than two.
func fair(p problem, i, j int, borrowed []uint64) bool {
	if borrowed[j] < 2 {
		return true
	}
	if ti, tj := oracleTurn(i, p.spare, p.claims), oracleTurn(j, p.spare, p.claims); ti != tj {
		return ti > tj
	}
	wi, wj := oracleWeight(i, p.spare, p.claims), oracleWeight(j, p.spare, p.claims)
	return ratioLessEqual(newAmount(borrowed[j]-2), wj, newAmount(borrowed[i]+2), wi)
}

// TestAllocateOrderIndependent: the order of the claims affects only remainders. Both results
// are the same exact number, rounded down or up.
func TestAllocateOrderIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		q, at := p.shuffled(t)
		got, other := p.allocate(), q.allocate()
		for i := range got {
			if d := int64(got[i]) - int64(other[at[i]]); d > 1 || d < -1 {
				t.Fatalf("claim %d gets %d, but %d in another order", i, got[i], other[at[i]])
			}
		}
	})
}

// TestAllocateMonotonicInLimit: a higher limit lowers no rate, except for remainders.
func TestAllocateMonotonicInLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		q := p
		q.limit += unit.Rate(rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, uint64(unit.MaxRate))).Draw(t, "more"))
		got, larger := p.allocate(), q.allocate()
		for i := range got {
			if larger[i]+1 < got[i] {
				t.Fatalf("claim %d gets %d at limit %d, but %d at limit %d", i, got[i], p.limit, larger[i], q.limit)
			}
		}
	})
}

// TestAllocateMonotonicInDemand: a higher demand of a claim does not lower its rate, except for
// remainders.
func TestAllocateMonotonicInDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		if len(p.claims) == 0 {
			return
		}
		i := rapid.IntRange(0, len(p.claims)-1).Draw(t, "who")
		q := p
		q.claims = append([]Claim{}, p.claims...)
		q.claims[i].Demand += unit.Rate(rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, uint64(unit.MaxRate))).Draw(t, "more"))
		if got, other := p.allocate()[i], q.allocate()[i]; other+1 < got {
			t.Fatalf("claim %d gets %d, but %d with a demand of %d (limit %d, %v, %+v)", i, got, other, q.claims[i].Demand, p.limit, p.spare, p.claims)
		}
	})
}

// TestAllocateSplitNeutral: a claim cannot gain by splitting its leaves, if weights are parts
// of its guarantee. Under Proportional, two halves of a leaf get as much as the leaf.
func TestAllocateSplitNeutral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.spare = Proportional
		for i := range p.claims {
			c := &p.claims[i]
			c.Guarantee, c.Ceiling = min(c.Guarantee, unit.MaxRate/100), unit.MaxRate
			if p.isLeaf(i) {
				c.Guarantee |= 1
			}
			c.Weight = uint64(c.Guarantee)
		}
		p.limit = min(p.limit, unit.MaxRate) // no claim wants more than that
		p.fit()
		if len(p.claims) == 0 {
			return
		}
		i := rapid.IntRange(0, len(p.claims)-1).Draw(t, "who")
		if !p.isLeaf(i) || p.claims[i].Guarantee < 2 {
			return
		}
		p.claims[i].Demand = unit.MaxRate
		q := p
		q.claims = append([]Claim{}, p.claims...)
		part := unit.Rate(rapid.Uint64Range(1, uint64(p.claims[i].Guarantee)-1).Draw(t, "part"))
		other := q.claims[i]
		q.claims[i].Guarantee, q.claims[i].Weight = part, uint64(part)
		other.Guarantee -= part
		other.Weight -= uint64(part)
		q.claims = append(q.claims, other)
		one, two := p.allocate(), q.allocate()
		if d := int64(two[i]+two[len(one)]) - int64(one[i]); d > 1 || d < -1 {
			t.Fatalf("claim %d gets %d, but split %d and %d (limit %d, %+v)", i, one[i], two[i], two[len(one)], p.limit, p.claims)
		}
	})
}
