package share

import (
	"math/rand/v2"
	"testing"

	"headgate.dev/headgate/unit"
)

// An interface has at most 4,000 leaf groups. The target is less than 1 ms, so that a change of
// demand can be handled in every control cycle.

func BenchmarkAllocateFlat4000(b *testing.B) { benchmarkAllocate(b, nil, 4000) }

func BenchmarkAllocateThreeLevels4000(b *testing.B) { benchmarkAllocate(b, []int{10, 20}, 20) }

// benchmarkAllocate measures an overloaded tree, with ceilings that limit about half of the
// inner claims.
func benchmarkAllocate(b *testing.B, inner []int, leaves int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var claims []Claim
	parents := []int{-1}
	for _, fan := range append(inner, leaves) {
		var level []int
		share := 10 * unit.Gbit / unit.Rate(fan*len(parents))
		for _, p := range parents {
			for range fan {
				g := unit.Rate(rnd.Uint64N(uint64(share)))
				level = append(level, len(claims))
				claims = append(claims, Claim{Parent: p, Guarantee: g, Ceiling: 2 * share, Weight: uint64(g),
					Priority: rnd.IntN(8), Demand: unit.Rate(rnd.Uint64N(uint64(4 * share)))})
			}
		}
		parents = level
	}
	for _, spare := range []Spare{Proportional, Equal, Priority} {
		b.Run(spare.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Allocate(10*unit.Gbit, spare, claims)
			}
		})
	}
}
