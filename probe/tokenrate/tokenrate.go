package tokenrate

import (
	"fmt"
	"math"
	"slices"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Result is the result for a path's shaper.
type Result struct {
	// Rate is the token rate, in bit/s of layer 2.
	Rate probe.Estimate `json:"rate"`
	// Bucket is the bucket size in bytes of layer 2. From a single train it is the number
	// of bytes found in the bucket, which is its size if nothing was sent before.
	Bucket probe.Estimate `json:"bucket"`
	// Policed is set if packets above the rate are dropped instead of queued.
	Policed bool `json:"policed,omitempty"`
	// Joint is set if no limit was found. It has the bounds that the train shows.
	Joint *Joint `json:"joint,omitempty"`
	// Held is the layer 2 bytes, and HeldSeconds the time, for which trains that were sent a little faster than Rate arrived at it: what the rate was confirmed
	// for. A limit that takes longer to show may be lower. If Rate is a bound, it is the bytes of the longest train that passed at it.
	Held        unit.Bytes `json:"held_bytes,omitempty"`
	HeldSeconds float64    `json:"held_seconds,omitempty"`

	line         curve
	from         int     // index of the first packet that was limited
	k            int     // packets in each of the runs that agree
	sd           float64 // their relative standard deviation
	crossTraffic bool    // cross traffic was between the packets
	knee         bool    // the head was faster
	full         float64 // bytes in the bucket before the first of several trains, of which the last emptied it
}

// Knee reports whether the head of the train arrived faster than its tail.
func (r Result) Knee() bool { return r.knee }

// Full returns how many bytes of layer 2 the bucket held before the first of several trains, of which only the last emptied it; 0 if that is not known.
func (r Result) Full() float64 { return r.full }

// Shared reports whether others' traffic was between the packets that show the rate.
func (r Result) Shared() bool { return r.crossTraffic }

// Joint is the result of a train that found no limit: the token rate is at least Rate, or
// the bucket size and the tokens that arrived during the train total at least Bytes.
// Joint assumes that the bucket was full before the train.
type Joint struct {
	Rate  float64    `json:"rate"`
	Bytes unit.Bytes `json:"bytes"`
	Took  float64    `json:"seconds"`
}

// Constants of the evaluation of one train, chosen by Headgate.
const (
	// limited: a train that arrives below this fraction of its sending rate was limited.
	limited = 0.97
	// stamp is the error of a kernel receive timestamp, in ns (measured).
	stamp = 1000.0
	// stall is a silence, in ns, of a sender that sends back to back which shows
	// that the sender stalled (1 to 11 ms, measured).
	stall = 1e6
	// silent is a silence in packet times that is not random in a train of thousands.
	silent = 3
	// policed is the minimum fraction that a policer drops; hosts and links with
	// occasional loss drop less.
	policed = 0.12
	// window is the number of packets that are neighbours.
	window = 16
	// crossTraffic: a tail that is slower by this fraction than its runs had cross traffic in
	// it.
	crossTraffic = 0.002
	// minAgree is the minimum length of runs that agree: shorter runs agree by chance.
	minAgree = 8
	// longRun is the run length in which a thousandth of cross traffic shows.
	longRun = 256
	// The relative error of the rate is clockError, the rate error of the receiver's clock
	// (9 of 10 clocks that are off by at most 5e-5), and the fraction spread of the scatter
	// of the runs that agree. The error of the bucket size is the timestamp error of the
	// first packet: sizeError for both sides, boundError for one. With these the
	// intervals hold nine of ten random paths. With cross traffic the rate is too low by
	// up to small in one of five paths, because the runs that agree have packets of it.
	clockError, spread, small = 4.5e-5, 0.4, 1e-3
	sizeError, boundError     = 1.3, 2.5
)

// Estimate computes the token rate and the bucket size from a train that was sent faster
// than the token rate for longer than the bucket lasts. capacity is the capacity of the
// path in bit/s of layer 2: a train that arrived at the capacity found no shaper.
func Estimate(s *probe.Sample, capacity float64) Result {

	c := newCurve(s, capacity)
	if len(c.at) < 2*minTail {
		return noEstimate(fmt.Sprintf("only %d of %d packets arrived", s.Count()-s.Lost(), s.Count()))
	}
	from := c.knee()
	headless := from == 0 || len(c.at)-from < minTail
	if headless {
		from = min(minTail, len(c.at)/4)
	}
	n := len(c.at)
	top := math.Min(c.offered(from), capacity)
	tail, places, lost := c.slopes(from, n, c.bytes), c.slopes(from, n, c.places()), c.lost(from, n)
	if math.IsInf(tail, 1) {
		// One super-packet passed a bucket with enough tokens, which shows no rate.
		return noEstimate("all packets arrived at once")
	}
	r := Result{line: c, from: from, knee: !headless}
	if tail > limited*top || lost < policed && places > limited*top && !c.drops(from) {
		r.Rate, r.Bucket = probe.NoEstimate("the train found no limit"), probe.NoEstimate("the train found no limit")
		// What was held back arrives at once, and a tail can be faster than it was sent.
		r.Joint = c.joint(math.Min(tail, c.offered(from)))
		return r
	}
	r.Policed = places > limited*top
	found, ok := c.agreement(from, n, tail*(1-lowest), top, lost < policed)
	agree := ok && found.k >= minAgree && !r.Policed
	scatter, straight := c.straight(from, tail)
	// Cross traffic would make runs of hundreds of packets differ.
	alone := ok && found.k >= longRun && found.sd <= sharp && math.Abs(tail/found.center-1) < crossTraffic
	r.crossTraffic = agree && tail < found.center*(1-crossTraffic) || (r.Policed || lost >= policed) && !alone && c.uneven(from, tail)
	switch {
	case c.cut && (!agree && !r.Policed || r.crossTraffic):
		r = noEstimate("an end of the path stalled")
		r.Joint = c.joint(c.bytes[n-1] * 8e9 / (c.at[n-1] - c.at[0])) // a stall makes a train longer
		return r
	case !r.Policed && c.changed(from, tail, top, lost < policed):
		return noEstimate("the rate changed during the train")
	case r.Policed && !r.crossTraffic:
		// Tokens for up to two packets remain at either end.
		r.Rate = within(tail, math.Hypot(clockError, 4/float64(n-from)))
	case straight && lost < policed && (!agree || scatter < found.sd):
		r.crossTraffic, r.k, r.sd = false, n-from, scatter
		r.Rate = within(tail, math.Hypot(clockError, 2*scatter))
	case agree && (!r.crossTraffic || lost < policed):
		r.k, r.sd = found.k, found.sd
		r.Rate = within(found.center, math.Hypot(clockError, spread*found.sd))
		if tail < found.center*(1-clockError) {
			// With cross traffic, its small packets may be in most runs.
			r.Rate.High += small * found.center
		}
	case headless && !r.Policed:
		// Cross traffic may have slowed the train from its begin, before any limiter did.
		r = noEstimate("cross traffic hides whether the train was limited")
		r.line, r.from, r.Joint = c, from, c.joint(tail*limited)
		return r
	default:
		// The cross traffic's part of the rate is missing.
		r.Rate = probe.Estimate{Value: tail * limited, Low: tail * limited, AtLeast: true}
	}
	r.Bucket = r.bucket()
	return r
}

// straight reports whether a tail deviates from its line no more than its packets deviate
// from their neighbours. In that case the deviations are delays of the receiver or of a
// virtual machine, of up to tens of microseconds, and there was no cross traffic, which
// delays all later packets as well. scatter is the deviation relative to the duration of
// the tail.
func (c curve) straight(from int, rate float64) (scatter float64, ok bool) {
	n := len(c.at)
	if n-from < 8*window {
		return 0, false
	}
	over := make([]float64, n-from)
	for i := range over {
		over[i] = c.at[from+i] - (c.bytes[from+i]-c.bytes[from])*8e9/rate
	}
	near, count := 0.0, 0.0
	for part := range slices.Chunk(over, window) {
		if len(part) == window {
			near, count = near+middle(part), count+1
		}
	}
	far := middle(over)
	return far / (c.at[n-1] - c.at[from]), far < 1.5*near/count+stamp
}

// uneven reports whether the packets that pass a policer deviate by more than the one
// packet for which tokens may be missing: cross traffic uses tokens. Packets that were
// held back by a stall and arrive at once after a silence do not count.
func (c curve) uneven(from int, rate float64) bool {
	over := func(i int) float64 { return c.bytes[i] - rate*c.at[i]/8e9 }
	silence := math.Max(silent*(c.at[len(c.at)-1]-c.at[from])/float64(len(c.at)-from), stall/10)
	low, high := math.Inf(1), math.Inf(-1)
	until, level := 0.0, 0.0 // end and level of the packets that were held back
	for i := from; i < len(c.at); i++ {
		if i > from && c.at[i]-c.at[i-1] > silence && c.at[i] > until {
			until, level = 2*c.at[i]-c.at[i-1], over(i-1)-c.frame
		}
		if b := over(i); c.at[i] >= until || b >= level {
			until = 0
			low, high = math.Min(low, b), math.Max(high, b)
		}
	}
	return high-low > 1.5*c.frame+6*stampBytes(rate)
}

// joint returns the bounds that a train without a limit shows.
func (c curve) joint(rate float64) *Joint {
	n := len(c.at)
	return &Joint{Rate: rate, Bytes: unit.Bytes(c.bytes[n-1]), Took: c.at[n-1] / 1e9}
}

// changed reports whether the two halves of the tail have different rates, each without
// cross traffic.
func (c curve) changed(from int, tail, top float64, whole bool) bool {
	n := len(c.at)
	middle := (from + n) / 2
	var rates []float64
	for _, part := range [][2]int{{from, middle}, {middle, n}} {
		mean := c.slopes(part[0], part[1], c.bytes)
		found, ok := c.agreement(part[0], part[1], math.Min(mean, tail)*(1-crossTraffic), top, whole)
		if !ok || found.k < minAgree || math.Abs(mean/found.center-1) > crossTraffic {
			return false
		}
		rates = append(rates, found.center)
	}
	return math.Abs(rates[0]/rates[1]-1) > 5*crossTraffic
}

func noEstimate(because string) Result {
	return Result{Rate: probe.NoEstimate(because), Bucket: probe.NoEstimate(because)}
}

func within(rate, part float64) probe.Estimate {
	return probe.Estimate{Value: rate, Low: rate * (1 - part), High: rate * (1 + part)}
}

// drops reports whether packets are lost only after the bucket is empty.
func (c curve) drops(from int) bool {
	return c.lost(from, len(c.at)) > 3*c.lost(0, from)+3/float64(from)
}

// bucket returns the bytes that arrived above the token rate. With cross traffic in the
// shaper the result is a lower bound, because the cross traffic used a part of the
// bucket.
func (r Result) bucket() probe.Estimate {
	if r.line.headless {
		return probe.NoEstimate("an end of the path stalled before the bucket was empty")
	}
	if r.Rate.AtLeast {
		return probe.NoEstimate("cross traffic hides the token rate")
	}
	b := r.line.level(r.Rate.Value)
	if r.crossTraffic {
		return size([]float64{b}, r.Rate.Value, 2)
	}
	off := sizeError * stampBytes(r.Rate.Value)
	return probe.Estimate{Value: b, Low: math.Max(b-off, 0), High: b + off}
}
