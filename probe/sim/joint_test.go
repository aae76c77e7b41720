package sim_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// both returns a train of the same length from each sender.
func both(count int) probe.Joint {
	t := probe.Uniform("", count, 1500, 0)
	return probe.Joint{Trains: []probe.Train{t, t}}
}

// The packets of each sender arrive in order, without loss, and send times have that
// sender's clock.
func TestJointKeepsOrder(t *testing.T) {
	hop := func(rate unit.Rate) link.Spec {
		return link.Spec{Rate: rate, Queue: simtest.UnboundedQueue, Cross: []link.Cross{{Load: rate / 2}}}
	}
	m := sim.Meeting{
		Branches: []sim.Path{{Hops: []link.Spec{hop(200 * unit.Mbit)}}, {Hops: []link.Spec{hop(800 * unit.Mbit)}}, {}},
		Shared:   sim.Path{Hops: []link.Spec{hop(10 * unit.Gbit)}, Noise: time.Microsecond},
		Jitter:   time.Millisecond,
	}
	n := sim.NewJoint(m, 1)
	j := both(100)
	j.Trains = append(j.Trains, probe.Train{})
	j.Trains[0], j.Trains[2] = j.Trains[2], j.Trains[0] // a silent sender first
	var starts []float64
	for range 50 {
		s := n.Send(j)
		next := make([]int, 3)
		last := int64(0)
		for _, a := range s.Arrived {
			if a.Number != next[a.From] || a.At < last {
				t.Fatalf("packet %d of sender %d, at %d, arrived after %d at %d", a.Number, a.From, a.At, next[a.From], last)
			}
			next[a.From]++
			last = a.At
		}
		if !slices.Equal(next, []int{0, 100, 100}) {
			t.Fatalf("%v packets arrived", next)
		}
		starts = append(starts, float64(s.Sent[1][0]-s.Sent[2][0]))
	}
	mean, deviation := 0.0, 0.0
	for _, v := range starts {
		mean += v / float64(len(starts))
	}
	for _, v := range starts {
		deviation += (v - mean) * (v - mean) / float64(len(starts))
	}
	// The jitter of two starts, of 1 ms each.
	if d := math.Sqrt(deviation) / 1e6; d < 1.1 || d > 1.8 {
		t.Errorf("starts differ with a deviation of %.2f ms, want 1.4", d)
	}
}

// Start delays the senders.
func TestJointStart(t *testing.T) {
	j := both(10)
	j.Start = []time.Duration{0, 3 * time.Millisecond}
	m := sim.Meeting{Branches: make([]sim.Path, 2), Shared: sim.Path{Hops: []link.Spec{{Rate: unit.Gbit}}}}
	s := sim.NewJoint(m, 1).Send(j)
	if d := s.Arrived[10].At - s.Arrived[0].At; d != 3e6 {
		t.Errorf("the second sender's first packet arrived %d ns after the first sender's", d)
	}
}
