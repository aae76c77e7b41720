package traffic

import (
	"hash/fnv"
	"math/rand/v2"
)

// drawSeed is a seed for a run that was given none: never 0, and below 2^53, so
// that it survives every reader of JSON.
func drawSeed() uint64 { return 1 + rand.Uint64N(1<<53-1) }

// newRand gives a flow draws of its own, which depend on the run's seed and the
// flow's name alone: flows that come or go do not change what another one does.
// Purpose keeps apart what one flow draws independently.
func newRand(seed uint64, name, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name + "\x00" + purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
