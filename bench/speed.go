package bench

import (
	"math/rand/v2"
	"slices"
	"time"
)

// SortTime is the least of five times to sort a million random integers on one processor: how fast a machine is at the moment, for figures that depend on it. A
// machine that shares its processors with others can be half as fast for an hour, without any steal time.
func SortTime() time.Duration {
	r := rand.New(rand.NewPCG(1, 1))
	random := make([]int, 1_000_000)
	for i := range random {
		random[i] = r.Int()
	}
	least := time.Duration(-1)
	for range 5 {
		all := slices.Clone(random)
		began := time.Now()
		slices.Sort(all)
		if took := time.Since(began); least < 0 || took < least {
			least = took
		}
	}
	return least
}
