package bench

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/unit"
)

// Draw generates the random values of cases, from stated ranges, so that a bench is not limited to a
// few chosen settings. It is deterministic: a seed gives the same values on every machine. Each case
// has its own Draw (For), so that a new case, or one with more values, does not change the values of
// others.
type Draw struct {
	seed   uint64
	random *rand.Rand
}

// NewDraw returns the Draw of a seed.
func NewDraw(seed uint64) *Draw { return newDraw(seed, "") }

// NewSeed returns a new random seed, short enough to be typed.
func NewSeed() uint64 { return 1 + rand.Uint64N(999_999_999) }

func newDraw(seed uint64, name string) *Draw {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &Draw{seed, rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// Seed returns the seed, which reproduces all values.
func (d *Draw) Seed() uint64 { return d.seed }

// For returns the Draw of one case: the same values for the same seed and name, whatever other values
// were generated.
func (d *Draw) For(name string) *Draw { return newDraw(d.seed, name) }

// Uniform returns a number in [low, high).
func (d *Draw) Uniform(low, high float64) float64 { return low + (high-low)*d.random.Float64() }

// Log returns a log-uniform number in [low, high).
func (d *Draw) Log(low, high float64) float64 {
	return math.Exp(d.Uniform(math.Log(low), math.Log(high)))
}

// Int returns an integer from low to high, both included.
func (d *Draw) Int(low, high int) int { return low + d.random.IntN(high-low+1) }

// Rate returns a log-uniform rate from low to high. It has three digits, so that the printed value
// is exact.
func (d *Draw) Rate(low, high unit.Rate) unit.Rate {
	v := unit.Rate(threeDigits(d.Log(float64(low), float64(high))))
	return min(max(v, low), high)
}

// Duration returns a log-uniform duration from low to high, with three digits.
func (d *Draw) Duration(low, high time.Duration) time.Duration {
	v := time.Duration(threeDigits(d.Log(float64(low), float64(high))))
	return min(max(v, low), high)
}

// Shares returns n parts of 100 %, each a whole percentage of at least minShare; all such partitions are
// equally likely.
func (d *Draw) Shares(n int, minShare unit.Share) []unit.Share {
	const percent = unit.Whole / 100
	spare := int(unit.Whole/percent) - n*int(minShare/percent)
	if n < 1 || spare < 0 || minShare%percent != 0 {
		panic(fmt.Sprintf("bench: %d shares of at least %v do not fit", n, minShare))
	}
	// n-1 separators among the spare percents: at which of the places they are.
	out := make([]unit.Share, n)
	places := d.random.Perm(spare + n - 1)[:n-1]
	bar := make([]bool, spare+n-1)
	for _, at := range places {
		bar[at] = true
	}
	i := 0
	out[0] = minShare
	for _, is := range bar {
		if is {
			i++
			out[i] = minShare
		} else {
			out[i] += percent
		}
	}
	return out
}

// Shuffle brings n elements into a random order, by swaps (rand.Shuffle).
func (d *Draw) Shuffle(n int, swap func(i, j int)) { d.random.Shuffle(n, swap) }

// OneOf returns one of the values.
func OneOf[T any](d *Draw, values ...T) T { return values[d.random.IntN(len(values))] }

func threeDigits(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(math.Round(v/step) * step)
}
