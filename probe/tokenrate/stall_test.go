package tokenrate

import (
	"math"
	"testing"

	"headgate.dev/headgate/probe"
)

// A link or a sender that stalled for some ms does not hide the rate of a policer and is
// not taken for cross traffic.
func TestStall(t *testing.T) {
	const rate, sentRate, frame = 100e6, 300e6, 1514
	for name, stood := range map[string]struct{ sender, path int64 }{
		"nothing":           {},
		"a link on the way": {path: 3e6},
		"the sender":        {sender: 3e6},
		"both":              {sender: 3e6, path: 2e6},
	} {
		s := probe.Sample{Train: probe.Uniform("", 6000, 1500, sentRate)}
		late := int64(0)
		// A full queue: one of three packets passes, in order.
		for i := range s.Count() {
			if i == 2000 {
				late = stood.sender
			}
			s.Sent = append(s.Sent, int64(float64(i)*frame*8e9/sentRate)+late)
			if i%3 != 0 {
				continue
			}
			at := int64(float64(i/3) * frame * 8e9 / rate)
			if from := int64(100e6); at > from {
				at = max(at, from+stood.path)
			}
			s.Arrived = append(s.Arrived, probe.Arrival{Number: i, At: at})
		}
		r := Estimate(&s, math.Inf(1))
		if r.Rate.AtLeast || math.Abs(r.Rate.Value/rate-1) > 0.002 {
			t.Errorf("%s: %+v", name, r.Rate)
		}
	}
}

// A train that arrives at once, as a super-packet does, shows nothing, and a longer one
// follows.
func TestAtOnce(t *testing.T) {
	s := probe.Sample{Train: probe.Uniform(ladder, lookCount, 1500, 0)}
	for i := range s.Count() {
		s.Sent = append(s.Sent, int64(i))
		s.Arrived = append(s.Arrived, probe.Arrival{Number: i, At: 5e6})
	}
	m := Ladder{Capacity: math.Inf(1)}
	if r := m.Estimate([]probe.Sample{s}); r.Rate.Known() || r.Joint != nil {
		t.Errorf("%+v", r)
	}
	if next, ok := m.Next([]probe.Sample{s}); !ok || next.Count() != firstCount {
		t.Errorf("next train: %v, %d packets", ok, next.Count())
	}
}

// A long train that shows nothing, or only its head, is repeated unchanged, up to five
// times in all.
func TestDrainAgain(t *testing.T) {
	m := Drain{Capacity: 1e9, Left: 100_000_000}
	lost := probe.Sample{Train: probe.Uniform(drainPurpose, 5000, 1500, 900e6), Sent: make([]int64, 5000)}
	head := probe.Sample{Train: lost.Train}
	for i := range int64(5000) {
		at := i * 13_500
		at += i / 1500 * 80e6 // the sender stalled three times
		head.Sent = append(head.Sent, at)
		head.Arrived = append(head.Arrived, probe.Arrival{Number: int(i), At: at + 5e6})
	}
	samples := []probe.Sample{lost, head, lost, lost}
	for n := range samples {
		if next, ok := m.Next(samples[:n+1]); !ok || next.Bytes() != lost.Bytes() {
			t.Errorf("after %d trains: %v, %d bytes", n+1, ok, next.Bytes())
		}
	}
	if next, ok := m.Next(append(samples, head)); ok {
		t.Errorf("after five trains: %d bytes", next.Bytes())
	}
	m.Left = 1_000_000
	if next, ok := m.Next([]probe.Sample{lost}); ok {
		t.Errorf("without budget: %d bytes", next.Bytes())
	}
}
