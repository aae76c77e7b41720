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

// Uniform returns a number in [least, most).
func (d *Draw) Uniform(least, most float64) float64 { return least + (most-least)*d.random.Float64() }

// Log returns a log-uniform number in [least, most).
func (d *Draw) Log(least, most float64) float64 {
	return math.Exp(d.Uniform(math.Log(least), math.Log(most)))
}

// Int returns an integer from least to most, both included.
func (d *Draw) Int(least, most int) int { return least + d.random.IntN(most-least+1) }

// Rate returns a log-uniform rate from least to most. It has three digits, so that the printed value
// is exact.
func (d *Draw) Rate(least, most unit.Rate) unit.Rate {
	v := unit.Rate(threeDigits(d.Log(float64(least), float64(most))))
	return min(max(v, least), most)
}

// Duration returns a log-uniform duration from least to most, with three digits.
func (d *Draw) Duration(least, most time.Duration) time.Duration {
	v := time.Duration(threeDigits(d.Log(float64(least), float64(most))))
	return min(max(v, least), most)
}

// Shares returns n parts of 100 %, each a whole percentage of at least least; all such partitions are
// equally likely.
func (d *Draw) Shares(n int, least unit.Share) []unit.Share {
	const percent = unit.Whole / 100
	spare := int(unit.Whole/percent) - n*int(least/percent)
	if n < 1 || spare < 0 || least%percent != 0 {
		panic(fmt.Sprintf("bench: %d shares of at least %v do not fit", n, least))
	}
	// n-1 separators among the spare percents: at which of the places they are.
	out := make([]unit.Share, n)
	places := d.random.Perm(spare + n - 1)[:n-1]
	bar := make([]bool, spare+n-1)
	for _, at := range places {
		bar[at] = true
	}
	i := 0
	out[0] = least
	for _, is := range bar {
		if is {
			i++
			out[i] = least
		} else {
			out[i] += percent
		}
	}
	return out
}

// OneOf returns one of the values.
func OneOf[T any](d *Draw, values ...T) T { return values[d.random.IntN(len(values))] }

func threeDigits(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(math.Round(v/step) * step)
}
