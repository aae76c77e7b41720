package credits

import (
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
)

// Result is the burst credits of one direction of a path. Rates are bit/s of layer 2.
type Result struct {
	// Burst is the rate while the bucket has tokens: the capacity of the path. Baseline is the rate of a transfer that has used them, at which tokens are added.
	Burst    probe.Estimate `json:"burst"`
	Baseline probe.Estimate `json:"baseline"`
	// Bucket is the bytes that pass above the baseline. It is a lower bound until two measurements found the same.
	Bucket probe.Estimate `json:"bucket"`
	// Passed is the layer 2 bytes that passed without a limit, if none was found, and PassedSeconds how long they took.
	Passed        int64   `json:"passed_bytes,omitempty"`
	PassedSeconds float64 `json:"passed_seconds,omitempty"`
	// Held is the layer 2 bytes, and HeldSeconds the time, for which trains a little faster than the baseline arrived at it.
	Held        int64   `json:"held_bytes,omitempty"`
	HeldSeconds float64 `json:"held_seconds,omitempty"`
	// Found is what the bucket held each time that it was emptied, oldest first.
	Found []Found `json:"found,omitempty"`
}

// Found is what a bucket held before it was emptied.
type Found struct {
	// At is when the measurement ended; zero is the one of the result.
	At time.Time `json:"at,omitzero"`
	// Baseline and Burst are the rates of that measurement in bit/s of layer 2, and Bytes what passed above the baseline.
	Baseline float64 `json:"baseline_bps"`
	Burst    float64 `json:"burst_bps"`
	Bytes    float64 `json:"bytes"`
}

const (
	// same is the relative difference up to which two amounts are the same: others' packets use tokens.
	same = 0.03
	// sizeError is the relative error of a bucket that two measurements found alike.
	sizeError = 0.01
	// sameLimiter is the relative difference of baselines above which they are of two limiters: the path has changed.
	sameLimiter = 0.03
	// mostFound bounds what is kept of earlier measurements.
	mostFound = 16
	// gone is how much more than its bucket allows passes where a limiter is gone.
	gone = 1.2
)

// Estimate returns the result of the trains that were seen. burst is the capacity of the path.
func (m Method) Estimate(seen []Passage, burst probe.Estimate) Result {
	r := Result{Burst: burst}
	all := split(seen)
	baseline, ok := rate(all)
	if !ok {
		r.Baseline = probe.NoEstimate(m.unlimited(&r, all))
		r.Bucket = r.Baseline
		return r
	}
	r.Baseline = baseline
	for _, b := range contents(all) {
		r.Found = append(r.Found, Found{Baseline: baseline.Value, Burst: burst.Value, Bytes: b})
	}
	for _, one := range all {
		if one.confirmed {
			p := one.trains[len(one.trains)-1]
			r.Held, r.HeldSeconds = r.Held+int64(p.Held), r.HeldSeconds+p.HeldSeconds
		}
	}
	if len(r.Found) == 0 {
		r.Bucket = probe.NoEstimate("others' traffic used tokens as well")
		return r
	}
	r.Bucket = size(r.Found)
	return r
}

// unlimited notes what passed without a limit, and says so.
func (m Method) unlimited(r *Result, all []round) string {
	passed, from, to := int64(0), int64(0), int64(0)
	for _, one := range all {
		for _, p := range one.trains {
			switch {
			case p.Hold:
				return "trains were slowed, and one that was to confirm a limiter was not: others' traffic slowed them, or a limiter takes longer to show"
			case p.Limited:
				return "a train was slowed, and bytes or time did not allow another one that confirms a limiter: raise bytes or time"
			case p.Passed == 0:
				continue
			case passed == 0:
				from = p.From
			}
			passed, to = passed+int64(p.Passed), p.To
		}
	}
	if passed == 0 {
		return "no packets arrived"
	}
	r.Passed, r.PassedSeconds = passed, float64(to-from)/1e9
	return fmt.Sprintf("no limiter below %s within %s: raise bytes or time for a larger bucket", probe.FormatRate(belowSent*drainPart*m.Capacity), probe.FormatBytes(float64(r.Passed)))
}

// alike returns the largest amount that two measurements found, as their mean; 0 if there is none.
func alike(found []float64) float64 {
	sorted := slices.Sorted(slices.Values(found))
	for i := len(sorted) - 1; i > 0; i-- {
		if sorted[i-1] >= sorted[i]*(1-same) {
			return (sorted[i-1] + sorted[i]) / 2
		}
	}
	return 0
}

// size returns the size of the bucket from what it held.
func size(found []Found) probe.Estimate {
	var bytes []float64
	for _, f := range found {
		bytes = append(bytes, f.Bytes)
	}
	most := slices.Max(bytes)
	b := alike(bytes)
	if b < most*(1-same) {
		return probe.Estimate{Value: most, Low: most, AtLeast: true}
	}
	return probe.Estimate{Value: b, Low: b * (1 - sizeError), High: math.Max(b*(1+sizeError), most)}
}

// Add joins a result with those before it, of the same direction of a path. at is when it was measured.
func (r Result) Add(before Result, at time.Time) Result {
	for i := range r.Found {
		if r.Found[i].At.IsZero() {
			r.Found[i].At = at
		}
	}
	another := r.Baseline.Known() && before.Baseline.Known() && math.Abs(r.Baseline.Value/before.Baseline.Value-1) > sameLimiter
	switch {
	case len(before.Found) == 0 || another:
		return r
	case len(r.Found) == 0 && !r.passes(before):
		// It was not long enough to empty the bucket, or others' traffic hides its size.
		before.Passed, before.PassedSeconds = r.Passed, r.PassedSeconds
		return before
	case len(r.Found) == 0:
		return r
	}
	r.Found = append(slices.Clone(before.Found), r.Found...)
	r.Found = r.Found[max(0, len(r.Found)-mostFound):]
	r.Held, r.HeldSeconds = max(r.Held, before.Held), max(r.HeldSeconds, before.HeldSeconds)
	r.Bucket = size(r.Found)
	return r
}

// passes reports whether more passed than a limiter allows whose size is known.
func (r Result) passes(before Result) bool {
	return before.Bucket.Known() && !before.Bucket.AtLeast && float64(r.Passed) > gone*(before.Bucket.Value+before.Baseline.Value/8*r.PassedSeconds)
}

// Lasts returns how long a transfer has the burst rate from a full bucket, and Fills how long an idle path takes to fill an empty one; 0 if that is not known.
func (r Result) Lasts() time.Duration {
	if !r.Bucket.Known() || !r.Burst.Known() || r.Burst.Value <= r.Baseline.Value {
		return 0
	}
	return secondsOf(r.Bucket.Value * 8 / (r.Burst.Value - r.Baseline.Value))
}

// Fills returns how long an idle path takes to fill an empty bucket; 0 if that is not known.
func (r Result) Fills() time.Duration {
	if !r.Bucket.Known() || !r.Baseline.Known() {
		return 0
	}
	return secondsOf(r.Bucket.Value * 8 / r.Baseline.Value)
}
