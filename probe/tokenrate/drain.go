package tokenrate

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Drain continues where Ladder found no limit. It sends trains at a little less than the
// capacity, each twice as long as the last, until one empties the bucket. Trains back to
// back could not be that long: the queue before the narrow link overflows, and of a long
// train only the packets that fit into that queue arrive.
type Drain struct {
	// Capacity of the path in bit/s of layer 2; +Inf is unknown.
	Capacity float64
	// Rate is that of the trains, as of Ladder; 0 is a little less than the capacity.
	Rate unit.Rate
	// Left is the maximum of layer 2 bytes of the next train.
	Left unit.Bytes
}

// Constants of Drain, chosen by Headgate.
const (
	drainPurpose = "tokenrate/drain"
	// drainFraction is the rate as a fraction of the capacity, like the seed's 7/8 (2.6.3). A
	// token rate above the fraction limited of it is not detected.
	drainFraction = 0.9
	firstDrain    = 8_000_000 // bytes: the trains of Ladder were too short
	// maxUnreadable bounds the long trains in a row that show nothing because an end
	// stalled.
	maxUnreadable = 5
)

// Next returns the next train for the samples of Ladder and Drain. ok is false if a limit
// was found, or if the next train could show no more.
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
		// An end stalled, or the path changed: repeat the train.
		if n := len(samples); n >= maxUnreadable && !slices.ContainsFunc(samples[n-maxUnreadable:n-1], func(s probe.Sample) bool {
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
		rate = cmp.Or(m.Rate, unit.Rate(drainFraction*math.Min(m.Capacity, r.Joint.Rate)))
	}
	// A train that is hardly longer than the last would show no more.
	if m.Left < bytes {
		if m.Left < bytes/2+bytes/8 {
			return t, false
		}
		bytes = m.Left
	}
	return probe.Uniform(drainPurpose, int(bytes)/(mtu+probe.Overhead), mtu, rate), rate > 0
}

// readable reports whether a train shows something of all that it sent, or is not a train
// of Drain. The part before an end stalled is only the head of a train.
func readable(s *probe.Sample, r Result) bool {
	return !strings.HasPrefix(s.Purpose, drainPurpose) || r.Rate.Known() || r.Joint != nil && r.Joint.Bytes > s.Bytes()/2
}
