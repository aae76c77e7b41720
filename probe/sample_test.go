package probe_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Of 5 packets one is lost, one is late and one is duplicated. Only adjacent packets in
// order have a dispersion.
func TestSample(t *testing.T) {
	s := probe.Sample{Train: probe.Uniform("", 5, 986, 80*unit.Mbit), Sent: []int64{0, 100e3, 200e3, 300e3, 400e3}}
	for _, a := range [][2]int64{{0, 1000}, {1, 101_000}, {3, 301_000}, {2, 302_000}, {3, 303_000}} {
		s.Arrived = append(s.Arrived, probe.Arrival{Number: int(a[0]), At: a[1]})
	}
	if got := s.Lost(); got != 1 {
		t.Errorf("%d packets are lost, want 1", got)
	}
	if got := s.Dispersions(); !slices.Equal(got, []int64{100_000, 1000}) {
		t.Errorf("dispersions %v", got)
	}
	if got := s.SendingRate(); math.Abs(got-80e6) > 1 {
		t.Errorf("sent at %.0f bit/s", got)
	}
	// 4 frames of 1,000 bytes in 302 us.
	if got, want := s.ArrivalRate(), 4*8000/302e-6; math.Abs(got-want) > 1 {
		t.Errorf("arrived at %.0f bit/s, want %.0f", got, want)
	}
}

// Split returns one sample for each part, whose packets are numbered from 0.
func TestSplit(t *testing.T) {
	s := probe.Sample{
		Train: probe.Train{Parts: []probe.Part{{Count: 2, Size: 500}, {Count: 3, Size: 1500, Pause: time.Millisecond}}},
		Sent:  []int64{1, 2, 3, 4, 5},
		Arrived: []probe.Arrival{
			{Number: 0, At: 10}, {Number: 2, At: 20}, {Number: 1, At: 30}, {Number: 4, At: 40}, {Number: 7, At: 50},
		},
	}
	if s.Count() != 5 || s.Bytes() != 2*514+3*1514 {
		t.Errorf("%d packets, %v", s.Count(), s.Bytes())
	}
	parts := s.Split()
	if !slices.Equal(parts[0].Sent, []int64{1, 2}) || !slices.Equal(parts[1].Sent, []int64{3, 4, 5}) {
		t.Errorf("sent %v and %v", parts[0].Sent, parts[1].Sent)
	}
	if want := []probe.Arrival{{Number: 0, At: 10}, {Number: 1, At: 30}}; !slices.Equal(parts[0].Arrived, want) {
		t.Errorf("the first part: %v", parts[0].Arrived)
	}
	// A number that was never sent belongs to no part and is left out.
	if want := []probe.Arrival{{Number: 0, At: 20}, {Number: 2, At: 40}}; !slices.Equal(parts[1].Arrived, want) {
		t.Errorf("the second part: %v", parts[1].Arrived)
	}
}

// A mode is higher than its right neighbour and no lower than its left one. Of equal
// modes the lowest is the strongest.
func TestModes(t *testing.T) {
	values := []float64{11, 13, 25, 31, 33, 38, 45, 61, 65, 67, 71, 72, 73}
	h := probe.NewHistogram(values, 10) // 0 2 1 3 1 0 3 3
	var at []float64
	modes := h.Modes(values, 0)
	for _, m := range modes {
		at = append(at, m.At)
	}
	if !slices.Equal(at, []float64{12, 34, 72}) {
		t.Errorf("modes at %v", at)
	}
	if got := h.Modes(values, 3); len(got) != 2 {
		t.Errorf("modes of at least 3 values: %v", got)
	}
	if m, ok := probe.Strongest(modes, 0, 100); !ok || m.At != 34 {
		t.Errorf("the strongest mode is %v", m)
	}
	if m, ok := probe.Strongest(modes, 41, 100); !ok || m.At != 72 {
		t.Errorf("the strongest mode above 41 is %v", m)
	}
	if m, ok := probe.Strongest(modes, 41, 69); ok {
		t.Errorf("%v is a mode between 41 and 69", m)
	}
	if got := h.Share(64); math.Abs(got-3.0/13) > 1e-9 {
		t.Errorf("the share of 60 to 70 is %v", got)
	}
}
