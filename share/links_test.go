package share

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// network is one random call of AllocateLinks.
type network struct {
	capacities []unit.Rate
	problem
}

func drawNetwork(t *rapid.T) network {
	n := network{problem: drawProblem(t)}
	links := rapid.IntRange(1, 5).Draw(t, "links")
	for range links {
		n.capacities = append(n.capacities, unit.Rate(rapid.Uint64Range(0, 2*uint64(n.limit)).Draw(t, "capacity")))
	}
	for i := range n.claims {
		n.claims[i].Links = rapid.SliceOfN(rapid.IntRange(0, links-1), 0, 4).Draw(t, "path")
	}
	return n
}

// flat removes the claims below others.
func (n network) flat() network {
	n.claims = slices.DeleteFunc(slices.Clone(n.claims), func(c Claim) bool { return c.Parent >= 0 })
	return n
}

func (n network) allocate() []unit.Rate { return AllocateLinks(n.capacities, n.spare, n.claims) }

// carried returns the rate on a link.
func (n network) carried(rates []unit.Rate, link int) (sum unit.Rate) {
	for i, c := range n.claims {
		if c.Parent < 0 && slices.Contains(c.Links, link) {
			sum += rates[i]
		}
	}
	return sum
}

// TestAllocateLinksMatchesOracle: every rate is the oracle's exact number, rounded down or up.
func TestAllocateLinksMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t).flat()
		got, want := n.allocate(), oracleLinks(n.capacities, n.spare, n.claims)
		for i := range got {
			off := new(big.Rat).Sub(rat(uint64(got[i])), want[i])
			if off.Abs(off).Cmp(rat(1)) >= 0 {
				t.Fatalf("claim %d gets %d, want %s (capacities %d, %v, %+v)", i, got[i], want[i].FloatString(3), n.capacities, n.spare, n.claims)
			}
		}
	})
}

// TestAllocateLinksInvariants: no link carries more than its capacity, no rate is above a
// ceiling or a demand, guarantees that fit are met, and a claim that wants more crosses a full
// link, except for one bit per claim of the link.
func TestAllocateLinksInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		rates := n.allocate()
		full := map[int]bool{}
		fits := true
		for l, capacity := range n.capacities {
			carried := n.carried(rates, l)
			if carried > capacity {
				t.Fatalf("link %d carries %d of %d", l, carried, capacity)
			}
			full[l] = carried+unit.Rate(len(n.claims)) >= capacity
			promised := rat(0)
			for _, c := range n.claims {
				if c.Parent < 0 && slices.Contains(c.Links, l) {
					promised.Add(promised, rat(uint64(c.Guarantee)))
				}
			}
			fits = fits && promised.Cmp(rat(uint64(capacity))) <= 0
		}
		for i, c := range n.claims {
			want := oracleWant(i, n.claims)
			switch got := rat(uint64(rates[i])); {
			case got.Cmp(want) > 0:
				t.Errorf("claim %d gets %d, but can use only %s", i, rates[i], want.FloatString(0))
			case c.Parent >= 0:
			case fits && got.Cmp(oracleOwn(i, n.claims)) < 0:
				t.Errorf("claim %d gets %d of its guarantee of %d", i, rates[i], c.Guarantee)
			case got.Cmp(want) < 0 && !slices.ContainsFunc(c.Links, func(l int) bool { return full[l] }):
				t.Errorf("claim %d gets %d, can use %s, and no link is full (capacities %d, %v, %+v)", i, rates[i], want.FloatString(0), n.capacities, n.spare, n.claims)
			}
		}
	})
}

// TestAllocateIsOneLink: with one link that all claims cross, AllocateLinks equals Allocate,
// except for the assignment of remainders.
func TestAllocateIsOneLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for i := range p.claims {
			p.claims[i].Links = []int{0}
		}
		one, links := p.allocate(), AllocateLinks([]unit.Rate{p.limit}, p.spare, p.claims)
		for i, c := range p.claims {
			if c.Parent < 0 && max(one[i], links[i])-min(one[i], links[i]) > 1 {
				t.Fatalf("claim %d gets %d of one limit, but %d of one link (capacity %d, %v, %+v)", i, one[i], links[i], p.limit, p.spare, p.claims)
			}
		}
	})
}

// TestAllocateLinksAtOneLevel: claims over links that are full at the same level, with rounded
// parts, overdraw no link.
func TestAllocateLinksAtOneLevel(t *testing.T) {
	var claims []Claim
	for i := range 3 {
		claims = append(claims, Claim{Parent: -1, Ceiling: unit.MaxRate, Weight: 1, Demand: unit.MaxRate, Links: []int{0, 1, i % 2}})
	}
	got := AllocateLinks([]unit.Rate{10, 10}, Equal, claims)
	if sum := got[0] + got[1] + got[2]; sum != 10 || slices.Min(got) < 3 {
		t.Errorf("10 bit/s are divided into %d", got)
	}
}

func TestAllocateLinksPanicsOnInvalidLink(t *testing.T) {
	for _, link := range []int{-1, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("link %d of 1 is accepted", link)
				}
			}()
			AllocateLinks([]unit.Rate{1}, Equal, []Claim{{Parent: -1, Links: []int{link}}})
		}()
	}
}

// A control cycle of a network: 10,000 reservations of six links each, over 2,000 directed links.
func BenchmarkAllocateLinks(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	capacities := make([]unit.Rate, 2000)
	for l := range capacities {
		capacities[l] = unit.Rate(1+rnd.IntN(10)) * unit.Gbit
	}
	claims := make([]Claim, 10_000)
	for i := range claims {
		rate := unit.Rate(1+rnd.IntN(100)) * unit.Mbit
		c := Claim{Parent: -1, Guarantee: rate, Ceiling: unit.MaxRate, Weight: uint64(rate), Priority: rnd.IntN(4), Demand: unit.Rate(rnd.IntN(400)) * unit.Mbit}
		for range 6 {
			c.Links = append(c.Links, rnd.IntN(len(capacities)))
		}
		claims[i] = c
	}
	for b.Loop() {
		AllocateLinks(capacities, Priority, claims)
	}
}
