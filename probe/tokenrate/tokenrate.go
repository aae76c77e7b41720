package tokenrate

import (
	"fmt"
	"math"
	"slices"

	"headgate/probe"
	"headgate/unit"
)

// Result is what a path's shaper gives.
type Result struct {
	// Rate is the token rate, in bit/s of layer 2.
	Rate probe.Estimate `json:"rate"`
	// Bucket is its size in bytes of layer 2. Of one train it is what that found in it:
	// all, if nobody had sent before.
	Bucket probe.Estimate `json:"bucket"`
	// Policed: what passes the rate is dropped, and does not wait.
	Policed bool `json:"policed,omitempty"`
	// Joint, if no limit was met: what the train got through.
	Joint *Joint `json:"joint,omitempty"`

	line    curve
	from    int     // the first packet that was limited
	k       int     // packets in the runs that agree
	sd      float64 // of these, relative
	crossed bool    // others' packets were among them
}

// Joint is all that a train that met no limit shows: the token rate is at least Rate,
// or the bucket and what came into it meanwhile at least Bytes. It rests on the
// bucket having been full.
type Joint struct {
	Rate  float64    `json:"rate"`
	Bytes unit.Bytes `json:"bytes"`
	Took  float64    `json:"seconds"`
}

// Constants of how one train is read, ours.
const (
	// limited is how much slower than it was sent a train must arrive for a limit.
	limited = 0.97
	// stamp is what a kernel's receive stamp is off by, in ns (measured).
	stamp = 1000.0
	// standstill is a silence of a sender that sends back to back, in ns: it was not
	// running (1 to 11 ms, measured).
	standstill = 1e6
	// silent is how many packets' time is no chance of a train of thousands.
	silent = 3
	// policed is the part that a limit drops which lets nothing wait; hosts and links
	// that lose a packet now and then lose less.
	policed = 0.12
	// window is how many packets are neighbours.
	window = 16
	// others: a tail that is slower by this part than its packets in a row had others'
	// among them.
	others = 0.002
	// leastAgree packets in a row have to agree: chance finds heaps of shorter runs.
	leastAgree = 8
	// longRun is so many in a row that a thousandth of others' traffic shows in them.
	longRun = 256
	// The rate is off by the receiver's clock, pace (9 of 10 that are off by 5e-5 at the
	// most), and by the part spread of the scatter of runs that agree. The bucket is off
	// by the stamp of the first packet: sizeError for both sides, boundError for one.
	// With these the intervals hold nine in ten of drawn paths. Where others send the rate
	// is too low by up to small in one of five: the runs that agree have packets of theirs.
	pace, spread, small   = 4.5e-5, 0.4, 1e-3
	sizeError, boundError = 1.3, 2.5
)

// Estimate reads the token rate and the bucket from a train that was sent faster
// than the token rate for longer than the bucket lasts. capacity is that of the
// path, in bit/s of layer 2: a train that was slowed down to no less met no shaper.
func Estimate(s *probe.Sample, capacity float64) Result {

	c := newCurve(s, capacity)
	if len(c.at) < 2*leastTail {
		return nothing(fmt.Sprintf("only %d of %d packets arrived", s.Count()-s.Lost(), s.Count()))
	}
	from := c.knee()
	headless := from == 0 || len(c.at)-from < leastTail
	if headless {
		from = min(leastTail, len(c.at)/4)
	}
	n := len(c.at)
	top := math.Min(c.offered(from), capacity)
	tail, places, lost := c.slopes(from, n, c.bytes), c.slopes(from, n, c.places()), c.lost(from, n)
	if math.IsInf(tail, 1) {
		// As one super-packet through a bucket that had room for it: that shows no rate at all.
		return nothing("its packets arrived all at once")
	}
	r := Result{line: c, from: from}
	if tail > limited*top || lost < policed && places > limited*top && !c.drops(from) {
		r.Rate, r.Bucket = probe.CannotTell("the train met no limit"), probe.CannotTell("the train met no limit")
		r.Joint = c.joint(tail)
		return r
	}
	r.Policed = places > limited*top
	found, ok := c.agreement(from, n, tail*(1-lowest), top, lost < policed)
	agree := ok && found.k >= leastAgree && !r.Policed
	scatter, straight := c.straight(from, tail)
	// Others would make runs of hundreds of packets differ.
	alone := ok && found.k >= longRun && found.sd <= sharp && math.Abs(tail/found.center-1) < others
	r.crossed = agree && tail < found.center*(1-others) || (r.Policed || lost >= policed) && !alone && c.uneven(from, tail)
	switch {
	case c.cut && (!agree && !r.Policed || r.crossed):
		return nothing("an end of the path stood still")
	case !r.Policed && c.changed(from, tail, top, lost < policed):
		return nothing("the rate changed within the train")
	case r.Policed && !r.crossed:
		// Tokens for up to two packets are left over at either end.
		r.Rate = within(tail, math.Hypot(pace, 4/float64(n-from)))
	case straight && lost < policed && (!agree || scatter < found.sd):
		r.crossed, r.k, r.sd = false, n-from, scatter
		r.Rate = within(tail, math.Hypot(pace, 2*scatter))
	case agree && (!r.crossed || lost < policed):
		r.k, r.sd = found.k, found.sd
		r.Rate = within(found.center, math.Hypot(pace, spread*found.sd))
		if tail < found.center*(1-pace) {
			// Others are there, and small packets of theirs may be in most runs.
			r.Rate.High += small * found.center
		}
	case headless && !r.Policed:
		// It may be others who slowed it down from its begin, before any limit could.
		r = nothing("others' traffic hides whether the train met a limit")
		r.line, r.from, r.Joint = c, from, c.joint(tail*limited)
		return r
	default:
		// What others have of the rate is missing.
		r.Rate = probe.Estimate{Value: tail * limited, Low: tail * limited, AtLeast: true}
	}
	r.Bucket = r.bucket()
	return r
}

// straight tells whether a tail strays from its line no more than its packets stray
// from their neighbours: whoever stamped or carried them was late by this much and
// that, up to tens of microseconds on a virtual machine, and no one else's packets were
// among them, for these delay all that come after. scatter is what it strays by, of its
// length.
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

// uneven tells whether what passes a limit that drops strays by more than the packet
// that its tokens may be short of: others take of them. What something that stood still
// held back, and let go at once after a silence, is not others'.
func (c curve) uneven(from int, rate float64) bool {
	over := func(i int) float64 { return c.bytes[i] - rate*c.at[i]/8e9 }
	silence := math.Max(silent*(c.at[len(c.at)-1]-c.at[from])/float64(len(c.at)-from), standstill/10)
	low, high := math.Inf(1), math.Inf(-1)
	until, level := 0.0, 0.0 // of what was held back
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

// joint is all that a train shows which met no limit.
func (c curve) joint(rate float64) *Joint {
	n := len(c.at)
	return &Joint{Rate: rate, Bytes: unit.Bytes(c.bytes[n-1]), Took: c.at[n-1] / 1e9}
}

// changed tells whether both halves of the tail have a rate each, clear of others'
// packets, and not the same.
func (c curve) changed(from int, tail, top float64, whole bool) bool {
	n := len(c.at)
	middle := (from + n) / 2
	var rates []float64
	for _, part := range [][2]int{{from, middle}, {middle, n}} {
		mean := c.slopes(part[0], part[1], c.bytes)
		found, ok := c.agreement(part[0], part[1], math.Min(mean, tail)*(1-others), top, whole)
		if !ok || found.k < leastAgree || math.Abs(mean/found.center-1) > others {
			return false
		}
		rates = append(rates, found.center)
	}
	return math.Abs(rates[0]/rates[1]-1) > 5*others
}

func nothing(because string) Result {
	return Result{Rate: probe.CannotTell(because), Bucket: probe.CannotTell(because)}
}

func within(rate, part float64) probe.Estimate {
	return probe.Estimate{Value: rate, Low: rate * (1 - part), High: rate * (1 + part)}
}

// drops tells whether packets are lost only once a bucket is empty.
func (c curve) drops(from int) bool {
	return c.lost(from, len(c.at)) > 3*c.lost(0, from)+3/float64(from)
}

// bucket is how much more came than the token rate gives. With others' traffic in
// the shaper it is a bound from below: they had a part of it.
func (r Result) bucket() probe.Estimate {
	if r.line.headless {
		return probe.CannotTell("an end of the path stood still while the bucket was not empty")
	}
	if r.Rate.AtLeast {
		return probe.CannotTell("others' traffic hides the token rate")
	}
	b := r.line.level(r.Rate.Value)
	if r.crossed {
		return size([]float64{b}, r.Rate.Value, 2)
	}
	off := sizeError * stampBytes(r.Rate.Value)
	return probe.Estimate{Value: b, Low: math.Max(b-off, 0), High: b + off}
}
