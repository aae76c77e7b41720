package tokenrate

import (
	"math"
	"slices"
	"strings"

	"headgate/probe"
	"headgate/unit"
)

// Drain goes on where Ours met no limit: trains at a little less than the capacity,
// each twice as long, until one empties the bucket. Back to back they could not be
// that long: what is sent faster than the narrow link takes it is lost in the queue
// before that link, and of a long train only as much arrives as the queue holds.
type Drain struct {
	// Capacity of the path, in bit/s of layer 2; +Inf is unknown.
	Capacity float64
	// Left is what the next train may send, in bytes of layer 2.
	Left unit.Bytes
}

// Constants, ours.
const (
	drainPurpose = "tokenrate/drain"
	// drainRate is the part of the capacity, as the seed's 7/8 is (2.6.3): a token rate
	// above limited of it is not seen.
	drainRate  = 0.9
	firstDrain = 8_000_000 // bytes: what Ours sends did not do
	// mostUnreadable long trains in a row that show nothing, because an end stood still in
	// them, are an answer.
	mostUnreadable = 5
)

// Next is the train that comes after those of Ours and of this method, or ok is false
// if they met a limit, or the next could tell no more.
func (m Drain) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	if len(samples) == 0 {
		return t, false
	}
	last := &samples[len(samples)-1]
	r := Estimate(last, m.Capacity)
	again := strings.HasPrefix(last.Purpose, drainPurpose)
	if r.Rate.Known() && (!again || len(r.line.at)-r.from >= enoughTail) {
		return t, false
	}
	if !again && !r.Rate.Known() && r.Joint == nil {
		return t, false
	}
	if !readable(last, r) {
		// Something stood still, or changed: another as long tells.
		if n := len(samples); n >= mostUnreadable && !slices.ContainsFunc(samples[n-mostUnreadable:n-1], func(s probe.Sample) bool {
			return readable(&s, Estimate(&s, m.Capacity))
		}) {
			return t, false
		}
		again := last.Train
		return again, again.Bytes() <= m.Left
	}
	bytes, rate := unit.Bytes(firstDrain), unit.Rate(0)
	if again {
		bytes, rate = 2*last.Bytes(), last.Parts[0].Rate
	} else {
		rate = unit.Rate(drainRate * math.Min(m.Capacity, r.Joint.Rate))
	}
	// One that is hardly longer than the last would tell no more.
	if m.Left < bytes {
		if m.Left < bytes/2+bytes/8 {
			return t, false
		}
		bytes = m.Left
	}
	return probe.Uniform(drainPurpose, int(bytes)/(mtu+probe.Overhead), mtu, rate), rate > 0
}

// readable tells whether a train shows something of all that it sent, or is none of the
// long ones: what came before an end stood still is but a head.
func readable(s *probe.Sample, r Result) bool {
	return !strings.HasPrefix(s.Purpose, drainPurpose) || r.Rate.Known() || r.Joint != nil && r.Joint.Bytes > s.Bytes()/2
}
