package traffic

import (
	"hash/fnv"
	"math/rand/v2"
)

// drawSeed returns a seed for a run without one: not 0, and below 2^53, so that every JSON reader
// keeps it exact.
func drawSeed() uint64 { return 1 + rand.Uint64N(1<<53-1) }

// newRand returns a flow's own random number generator, which depends only on the run's seed and the
// flow's name: adding or removing flows does not change the others. purpose separates independent
// sequences of one flow.
func newRand(seed uint64, name, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name + "\x00" + purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
