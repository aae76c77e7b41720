package traffic

import (
	"math"
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/unit"
)

// Kind of a distribution.
type Kind string

// The kinds of distributions.
const (
	ConstantKind Kind = "constant"
	Uniform      Kind = "uniform"
	Exponential  Kind = "exponential"
	Pareto       Kind = "pareto"
	Lognormal    Kind = "lognormal"
)

// Distribution is the distribution of random sizes or durations. The zero Distribution always returns
// 0.
type Distribution[T unit.Bytes | time.Duration] struct {
	// Kind "" is ConstantKind.
	Kind Kind `json:"kind"`
	// Mean of all kinds except Uniform, whose mean follows from Min and Max.
	Mean T `json:"mean,omitempty"`
	// Shape of Pareto is its tail index alpha, above 1 (otherwise there is no mean; up to 2 the
	// variance is infinite, and sample means converge slowly). Shape of Lognormal is sigma, the
	// standard deviation of the logarithm.
	Shape float64 `json:"shape,omitempty"`
	// Min and Max are the ends of Uniform. For Exponential, Pareto and Lognormal a Max other than 0
	// truncates larger values to it, which lowers the mean.
	Min T `json:"min,omitempty"`
	Max T `json:"max,omitempty"`
}

// Always returns the distribution with the constant value v.
func Always[T unit.Bytes | time.Duration](v T) Distribution[T] {
	return Distribution[T]{Kind: ConstantKind, Mean: v}
}

// Bounds of distributions, chosen by this project.
const (
	// minShape keeps Pareto's scale mean*(alpha-1)/alpha above 0: at 1.05 one draw in many thousands
	// already determines the mean.
	minShape = 1.05
	// maxSigma: at 4 the mean is e^8, 3,000 times, the median.
	maxSigma = 4
	// largest keeps values within both types: 73 years, or 2 EB.
	largest = math.MaxInt64 / 4
)

// Validate checks the parameters against the kind.
func (d Distribution[T]) Validate() error {
	for _, v := range []struct {
		key   string
		value T
	}{{"mean", d.Mean}, {"min", d.Min}, {"max", d.Max}} {
		if v.value < 0 || float64(v.value) > largest {
			return mistake(v.key, "%v is not between 0 and %v", v.value, T(largest))
		}
	}
	switch d.Kind {
	case "", ConstantKind:
		if d.Shape != 0 || d.Min != 0 || d.Max != 0 {
			return mistake("", "a constant has only a mean: leave out shape, min and max, or set the kind")
		}
		return nil
	case Uniform:
		switch {
		case d.Mean != 0 || d.Shape != 0:
			return mistake("", "a uniform distribution has min and max: leave out mean and shape")
		case d.Max <= d.Min:
			return mistake("max", "%v is not above the min of %v", d.Max, d.Min)
		}
		return nil
	case Exponential, Pareto, Lognormal:
	default:
		return mistake("kind", "%q is not a distribution: write constant, uniform, exponential, pareto or lognormal", d.Kind)
	}
	switch {
	case d.Mean == 0:
		return mistake("mean", "a distribution that is %s needs a mean above 0", d.Kind)
	case d.Min != 0:
		return mistake("min", "min is only for a uniform distribution, not for %s: leave it out", d.Kind)
	case d.Max != 0 && d.Max <= d.Mean:
		return mistake("max", "%v is not above the mean of %v", d.Max, d.Mean)
	case d.Kind == Exponential && d.Shape != 0:
		return mistake("shape", "an exponential distribution has no shape: leave it out")
	case d.Kind == Pareto && !(d.Shape >= minShape && d.Shape <= 1000):
		return mistake("shape", "the shape %g of a Pareto distribution is not between %g and 1000", d.Shape, minShape)
	case d.Kind == Lognormal && !(d.Shape > 0 && d.Shape <= maxSigma):
		return mistake("shape", "the shape (sigma) %g of a lognormal distribution is not above 0 and at most %d", d.Shape, maxSigma)
	}
	return nil
}

// Draw returns one value.
func (d Distribution[T]) Draw(r *rand.Rand) T {
	mean := float64(d.Mean)
	var v float64
	switch d.Kind {
	case Uniform:
		v = float64(d.Min) + r.Float64()*float64(d.Max-d.Min)
	case Exponential:
		v = mean * r.ExpFloat64()
	case Pareto:
		// 1-Float64 is in (0, 1]: the smallest value is the scale itself.
		v = mean * (d.Shape - 1) / d.Shape * math.Pow(1-r.Float64(), -1/d.Shape)
	case Lognormal:
		v = mean * math.Exp(d.Shape*r.NormFloat64()-d.Shape*d.Shape/2)
	default:
		return d.Mean
	}
	if d.Max > 0 {
		v = min(v, float64(d.Max))
	}
	return T(math.Round(min(v, largest)))
}
