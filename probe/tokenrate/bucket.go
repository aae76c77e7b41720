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
	held := func(size float64) float64 {
		tokens := size - float64(samples[0].Again)
		for i := range samples[:len(samples)-1] {
			arrived := samples[i].Arrived
			next := samples[i+1].Arrived
			if len(arrived) == 0 || len(next) == 0 || len(samples[i].Parts) == 0 {
				continue
			}
			tokens -= float64((samples[i].Count() - samples[i].Lost()) * samples[i].Parts[0].Frame())
			tokens = min(size, tokens+rate*math.Max(float64(next[0].At-arrived[0].At), 0)/8e9) - float64(samples[i+1].Again)
		}
		return tokens
	}
	// The size is at least found, and at most found plus all bytes that were sent before.
	low, high := found, found+float64(samples[0].Again)
	for i := range samples[:len(samples)-1] {
		high += float64(samples[i].Bytes() + samples[i+1].Again)
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
