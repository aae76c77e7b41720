package share

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"headgate/unit"

	"pgregory.net/rapid"
)

// problem is one random call of Allocate. Values are small as often as large, so
// that ties, zeros and remainders are met, and also overflow if there were any.
type problem struct {
	limit  unit.Rate
	spare  Spare
	claims []Claim
	depth  int
}

func drawProblem(t *rapid.T) problem {
	most := rapid.SampledFrom([]uint64{7, 1000, uint64(100 * unit.Mbit), uint64(unit.MaxRate)}).Draw(t, "scale")
	value := rapid.OneOf(rapid.Uint64Range(0, most), rapid.Uint64Range(0, min(most, 5)), rapid.Just(uint64(unit.MaxRate)))
	p := problem{
		limit: unit.Rate(rapid.Uint64Range(0, most).Draw(t, "limit")),
		spare: rapid.SampledFrom([]Spare{Proportional, Equal, Priority}).Draw(t, "spare"),
	}
	n := rapid.IntRange(0, 14).Draw(t, "claims")
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
		depths[i] = 1
		if i > 0 && rapid.Bool().Draw(t, "child") {
			if parent := rapid.IntRange(0, i-1).Draw(t, "parent"); depths[parent] < 3 {
				c.Parent, depths[i] = parent, depths[parent]+1
			}
		}
		p.claims = append(p.claims, c)
		p.depth = max(p.depth, depths[i])
	}
	return p
}

// shuffled is the same tree with the claims in another order; at says where the
// i-th claim has gone.
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

// Every rate is within one bit/s per level of the oracle's real number.
func TestAllocateIsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got, want := Allocate(p.limit, p.spare, p.claims), oracleAllocate(p.limit, p.spare, p.claims)
		for i := range got {
			off := new(big.Rat).Sub(rat(uint64(got[i])), want[i])
			if off.Abs(off).Cmp(rat(uint64(p.depth))) >= 0 {
				t.Fatalf("claim %d gets %d, and should get %s (of %d, %v, %+v)", i, got[i], want[i].FloatString(3), p.limit, p.spare, p.claims)
			}
		}
	})
}

// What a level promises, checked level by level and to the bit, whatever its
// parent got.
func TestAllocateKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		got := Allocate(p.limit, p.spare, p.claims)
		want := make([]uint64, len(p.claims))
		for i := range want {
			want[i] = oracleWant(i, p.claims).Num().Uint64()
		}
		checkLevel(t, p, uint64(p.limit), oracleChildren(-1, p.claims), got, want)
		for i := range p.claims {
			if kids := oracleChildren(i, p.claims); len(kids) > 0 {
				checkLevel(t, p, uint64(got[i]), kids, got, want)
			}
		}
	})
}

func checkLevel(t *rapid.T, p problem, given uint64, level []int, got []unit.Rate, want []uint64) {
	var handed, wanted, entitled uint64
	for _, i := range level {
		if uint64(got[i]) > want[i] {
			t.Fatalf("claim %d gets %d, above its demand or ceiling of %d", i, got[i], want[i])
		}
		handed += uint64(got[i])
		wanted += want[i]
		entitled += min(want[i], uint64(p.claims[i].Guarantee))
	}
	if handed != min(given, wanted) {
		t.Fatalf("%v hand out %d of %d, and want %d: it does not fit, or it idles", level, handed, given, wanted)
	}
	for _, i := range level {
		if entitled <= given && uint64(got[i]) < min(want[i], uint64(p.claims[i].Guarantee)) {
			t.Fatalf("claim %d gets %d, less than its guarantee of %d although all guarantees fit", i, got[i], p.claims[i].Guarantee)
		}
		if entitled > given {
			continue
		}
		for _, j := range level {
			if uint64(got[i]) < want[i] && !fair(p, i, j, got) {
				t.Fatalf("claim %d wants more than %d while claim %d is ahead with %d (of %d, %v, %+v)", i, got[i], j, got[j], p.limit, p.spare, p.claims)
			}
		}
	}
}

// fair says whether i, who wants more, has at least as much spare for its weight
// as j: the definition of weighted max-min, with one bit of rounding for each.
func fair(p problem, i, j int, got []unit.Rate) bool {
	extra := func(k int) uint64 { return uint64(got[k] - min(got[k], p.claims[k].Guarantee)) }
	ti, wi := turnAndWeight(p, i)
	tj, wj := turnAndWeight(p, j)
	if ti != tj {
		return ti > tj || extra(j) == 0
	}
	return extra(j) == 0 || cmpProducts(extra(i)+1, wj, extra(j)-1, wi) >= 0
}

func turnAndWeight(p problem, k int) (int, uint64) {
	w := oracleWeight(k, p.spare, p.claims).Num().Uint64()
	switch {
	case p.spare == Priority:
		return p.claims[k].Priority, w
	case p.spare == Proportional && p.claims[k].Weight == 0:
		return 1, w
	}
	return 0, w
}

// The order of the claims matters for remainders only: both answers are within
// depth of the same real number.
func TestAllocateDoesNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		q, at := p.shuffled(t)
		got, other := Allocate(p.limit, p.spare, p.claims), Allocate(q.limit, q.spare, q.claims)
		for i := range got {
			if d := int64(got[i]) - int64(other[at[i]]); d >= int64(2*p.depth) || -d >= int64(2*p.depth) {
				t.Fatalf("claim %d gets %d, and %d in another order", i, got[i], other[at[i]])
			}
		}
	})
}

// A higher limit takes nothing from anyone, but for remainders.
func TestAllocateGrowsWithTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		more := p.limit + unit.Rate(rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, uint64(unit.MaxRate))).Draw(t, "more"))
		got, larger := Allocate(p.limit, p.spare, p.claims), Allocate(more, p.spare, p.claims)
		for i := range got {
			if larger[i]+unit.Rate(2*p.depth) <= got[i] {
				t.Fatalf("claim %d gets %d of %d, and %d of %d", i, got[i], p.limit, larger[i], more)
			}
		}
	})
}
