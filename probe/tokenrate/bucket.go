package tokenrate

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// level returns the number of bytes above the token rate at the moment when the bucket
// was empty: the highest such value that several packets agree on. Cross traffic in the
// shaper lowers the value from there on.
func (c curve) level(rate float64) float64 {
	levels := make([]float64, len(c.at))
	for i := range c.at {
		levels[i] = c.bytes[i] - rate*c.at[i]/8e9
	}
	slices.Sort(levels)
	wide := 1.5 * stampBytes(rate)
	some := max(4, len(levels)/50)
	at := levels[0]
	for i := len(levels) - 1; i >= some-1; i-- {
		if j := i - some + 1; levels[i]-levels[j] <= 2*wide {
			at = mean(levels[j : i+1])
			break
		}
	}
	// Move from the upper edge of the level to its middle.
	for range 20 {
		from, _ := slices.BinarySearch(levels, at-wide)
		to, _ := slices.BinarySearch(levels, at+wide)
		if from == to {
			break
		}
		at = mean(levels[from:to])
	}
	return at
}

// stampBytes returns the bytes that a token rate passes in the time of a timestamp error,
// and some bytes because times are whole ns.
func stampBytes(rate float64) float64 { return math.Hypot(20, rate*stamp/8e9) }

// size returns the bucket size from the amounts that several trains found, each after a
// silence that was long enough to fill the bucket. The largest amount that enough trains
// found alike is the size. An amount that only one train found, or different amounts, are
// what cross traffic left.
func size(found []float64, rate float64, alike int) probe.Estimate {
	largest := slices.Max(found)
	off := stampBytes(rate)
	sum, n := 0.0, 0
	for _, b := range found {
		if b >= largest-3*off {
			sum, n = sum+b, n+1
		}
	}
	if n < alike {
		bound := math.Max(largest-boundError*off, 0)
		return probe.Estimate{Value: bound, Low: bound, AtLeast: true}
	}
	b := sum / float64(n)
	off *= sizeError
	return probe.Estimate{Value: b, Low: math.Max(b-off, 0), High: b + off}
}

// full returns the size of a bucket that was full before the first train and held found
// bytes before the last. Only the last train emptied it.
func full(samples []probe.Sample, rate, found float64) float64 {
	trains := make([]Use, len(samples))
	for i := range samples {
		s := &samples[i]
		trains[i] = Use{At: s.Arrived[0].At, Passed: float64(s.ArrivedBytes()), Again: float64(s.Again)}
	}
	return Size(trains, rate, found)
}

// Use is what a train used of a bucket.
type Use struct {
	// At is the first arrival, in ns of the receiver's clock.
	At int64
	// Passed is the layer 2 bytes that arrived, and Again those of the same train that were sent before, because an end disturbed them: they used so many tokens at
	// most, and a later train that is to empty the bucket must not be too short.
	Passed, Again float64
}

// Size returns the size, in bytes of layer 2, of a bucket that was full before the first of several trains, and held found bytes before the last: only that one
// emptied it. rate is that of its tokens in bit/s.
func Size(trains []Use, rate, found float64) float64 {
	held := func(size float64) float64 {
		tokens := size - trains[0].Again
		for i, t := range trains[:len(trains)-1] {
			next := trains[i+1]
			tokens -= t.Passed
			tokens = min(size, tokens+rate*math.Max(float64(next.At-t.At), 0)/8e9) - next.Again
		}
		return tokens
	}
	// The size is at least found, and at most found plus all bytes that were sent before.
	low, high := found, found
	for i, t := range trains {
		high += t.Again
		if i < len(trains)-1 {
			high += t.Passed
		}
	}
	for range 60 {
		if middle := (low + high) / 2; held(middle) < found {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
