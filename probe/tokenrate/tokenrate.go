package tokenrate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"headgate/probe"
	"headgate/unit"
)

// Result is what a path's shaper gives.
type Result struct {
	// Rate is the token rate, in bit/s of layer 2.
	Rate probe.Estimate `json:"rate"`
	// Bucket is its size in bytes of layer 2, as it was when the train came: full, if
	// nobody had sent before.
	Bucket probe.Estimate `json:"bucket"`
	// Joint, if no limit was met: what the train got through.
	Joint *Joint `json:"joint,omitempty"`

	tail int   // packets that were limited
	line curve // and where from
	from int
}

// Joint is all that a train that met no limit shows: the token rate is at least Rate,
// or the bucket and what came into it meanwhile at least Bytes.
type Joint struct {
	Rate  float64    `json:"rate"`
	Bytes unit.Bytes `json:"bytes"`
	Took  float64    `json:"seconds"`
}

// limited is how much slower than it was sent a train must arrive for a limit.
const limited = 0.97

// Estimate reads the token rate and the bucket from a train that was sent faster
// than the token rate for longer than the bucket lasts. capacity is that of the
// path, in bit/s of layer 2: a train that was slowed down to no less met no shaper.
func Estimate(s *probe.Sample, capacity float64) Result {
	if len(s.Arrived) < 2*leastTail {
		no := probe.CannotTell(fmt.Sprintf("only %d of %d packets arrived", len(s.Arrived), s.Count()))
		return Result{Rate: no, Bucket: no}
	}
	c := newCurve(s)
	from := c.knee()
	if from == 0 {
		from = min(leastTail, len(c.at)/4)
	}
	tail := c.rate(from)
	if tail > limited*math.Min(c.offered(from), capacity) {
		n := len(c.at) - 1
		no := probe.CannotTell("the train met no limit")
		return Result{Rate: no, Bucket: no, Joint: &Joint{
			Rate: tail, Bytes: unit.Bytes(c.bytes[n]), Took: c.at[n] / 1e9,
		}}
	}
	rate := tail
	width := widths[0]
	if found, ok := c.agreement(from, tail*(1-widths[0]), math.Min(c.offered(from), capacity)); ok {
		rate, width = found.center, found.width
	}
	r := Result{Rate: probe.Estimate{Value: rate, Low: rate * (1 - width), High: rate * (1 + width)}}
	r.Bucket = c.bucket(from, rate, tail)
	r.line, r.from, r.tail = c, from, len(c.at)-from
	return r
}

// bucket is how much more came than the token rate gives. With others' traffic in
// the shaper it is a bound from below: they had a part of it.
func (c curve) bucket(from int, rate, tail float64) probe.Estimate {
	most, sum := 0.0, 0.0
	for i := range c.at {
		b := c.bytes[i] - rate*c.at[i]/8e9
		most = math.Max(most, b)
		if i >= from {
			sum += b
		}
	}
	if tail < rate*0.99 {
		return probe.Estimate{Value: most, Low: most, AtLeast: true}
	}
	b := sum / float64(len(c.at)-from)
	return probe.Estimate{Value: b, Low: b, High: b}
}

// Ours sends a train back to back, and one that is twice as long until it meets a
// limit for long enough.
type Ours struct {
	// Capacity of the path, in bit/s of layer 2.
	Capacity float64
	// Budget bounds what all trains send, in bytes of layer 2; 0 is 5 MB.
	Budget unit.Bytes
}

// Constants, ours.
const (
	firstCount = 100
	oursBudget = 5_000_000
	enoughTail = 800 // packets
)

// Next is the train that comes after those that were sent, or ok is false if there
// are enough.
func (m Ours) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	count := firstCount
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
		count = 2 * samples[i].Count()
	}
	if n := len(samples); n > 0 {
		if r := Estimate(&samples[n-1], m.Capacity); r.Rate.Known() && r.tail >= enoughTail {
			return probe.Train{}, false
		}
	}
	t = probe.Uniform("tokenrate/train", count, mtu, 0)
	return t, t.Bytes() <= budget
}

// Estimate is the token rate that the last train shows, and the bucket as it was
// before the first: what the first limited train found in it, and what the trains
// before that had taken and the pauses given back.
func (m Ours) Estimate(samples []probe.Sample) Result {
	last := Estimate(&samples[len(samples)-1], m.Capacity)
	if !last.Rate.Known() || last.Bucket.AtLeast {
		return last
	}
	first, at := last, len(samples)-1
	for i := range samples[:at] {
		if r := Estimate(&samples[i], m.Capacity); r.Rate.Known() {
			first, at = r, i
			break
		}
	}
	found := first.line.bucket(first.from, last.Rate.Value, last.Rate.Value)
	if strings.HasPrefix(samples[at].Purpose, drainPurpose) {
		// Too much was sent before it, also again and not in the samples, to say what
		// the bucket held at first.
		last.Bucket = probe.Estimate{Value: found.Value, Low: found.Value, AtLeast: true}
		return last
	}
	b := full(samples[:at+1], last.Rate.Value, found.Value)
	last.Bucket = probe.Estimate{Value: b, Low: b, High: b}
	return last
}

// full is the size of a bucket that was full before the first train, and held found
// bytes before the last; no train but the last emptied it.
func full(samples []probe.Sample, rate, found float64) float64 {
	held := func(size float64) float64 {
		tokens := size
		for i := range samples[:len(samples)-1] {
			arrived := samples[i].Arrived
			next := samples[i+1].Arrived
			if len(arrived) == 0 || len(next) == 0 {
				continue
			}
			tokens -= float64(len(arrived) * samples[i].Parts[0].Frame())
			tokens = min(size, tokens+rate*float64(next[0].At-arrived[0].At)/8e9)
		}
		return tokens
	}
	// It is found at the least, and that and all that came at the most.
	low, high := found, found
	for i := range samples[:len(samples)-1] {
		high += float64(samples[i].Bytes())
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
