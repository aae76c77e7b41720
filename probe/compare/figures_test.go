package compare_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// figure37 is the network of figure 3.7, with cross traffic as fractions of the links
// R1-R2, R2-R5, R3-R4, R4-R5 and R5-RCV. The text does not give the senders' own links of
// this figure; they are those of group 1 (3.7.1).
func figure37(cross [5]float64) sim.Meeting {
	hop := func(mbit unit.Rate, part float64) link.Spec {
		s := link.Spec{Rate: mbit * unit.Mbit, Queue: simtest.UnboundedQueue}
		if part > 0 {
			s.Cross = []link.Cross{{Load: unit.Rate(part * float64(s.Rate))}}
		}
		return s
	}
	return sim.Meeting{
		Branches: []sim.Path{
			{Hops: []link.Spec{hop(500, 0), hop(200, cross[0]), hop(400, cross[1])}},
			{Hops: []link.Spec{hop(1600, 0), hop(800, cross[2]), hop(1200, cross[3])}},
		},
		Shared: sim.Path{Hops: []link.Spec{hop(10_000, cross[4])}, Noise: time.Microsecond},
	}
}

// both returns a train of the same length from each sender.
func both(count int) probe.Joint {
	t := probe.Uniform("", count, 1500, 0)
	return probe.Joint{Trains: []probe.Train{t, t}}
}

// asnd returns the slow path's histogram of several trains of 500, as fractions without
// H(0).
func asnd(m sim.Meeting) []float64 {
	n := sim.NewJoint(m, 5)
	h := make([]float64, 50)
	sum := 0.0
	for range 20 {
		s := n.Send(both(500))
		for i, count := range compare.ASND(&s, 0, 1) {
			if i > 0 && i < len(h) {
				h[i] += float64(count)
				sum += float64(count)
			}
		}
	}
	for i := range h {
		h[i] /= sum
	}
	return h
}

// Figures 3.13 to 3.17: without cross traffic nearly all pairs of the slow sender are 4
// packets apart. Cross traffic on its narrow link adds a mode at 8, behind it the
// neighbours of 4. On the narrow link of the fast sender cross traffic moves the mode to
// 3, and behind it makes two, at 1 and 6. On the shared link it changes nothing.
//
// The cross traffic of the text is MGEN's "random". Full-size frames with Poisson
// arrivals give its figures except two: 3 and 5 beside 4 need other frame sizes than
// ours, since 400 Mbit/s are twice 200 and full-size frames move a packet by 2; and modes
// at 1 and 6 need bursts.
func TestFigures313To317(t *testing.T) {
	none, a12, b34 := asnd(figure37([5]float64{})), asnd(figure37([5]float64{0.5})), asnd(figure37([5]float64{2: 0.5}))
	shared := asnd(figure37([5]float64{4: 0.5}))
	sizes, bursts := figure37([5]float64{1: 0.8}), figure37([5]float64{3: 0.5})
	sizes.Branches[0].Hops[2].Cross[0].Sizes = []int{100, 500, 1000, link.FullFrame}
	bursts.Branches[1].Hops[2].Cross[0].Model, bursts.Branches[1].Hops[2].Cross[0].Shape = link.Pareto, 1.1
	a25, b45 := asnd(sizes), asnd(bursts)
	for _, h := range [][]float64{none, a12, a25, b34, b45, shared} {
		t.Logf("%.3f", h[:13])
	}
	if none[4] < 0.95 || shared[4] < 0.95 {
		t.Errorf("pairs that are 4 apart: %.2f without cross traffic, %.2f with it on the shared link", none[4], shared[4])
	}
	// Equation 3.5: each mode is p times the previous one.
	if a12[8] < 0.05 || a12[12] > a12[8]/2 || a12[4]+a12[8]+a12[12] < 0.95 {
		t.Errorf("cross traffic on R1-R2: no modes at 4, 8 and 12: %.3f", a12[:13])
	}
	if a25[3] < 0.1 || a25[5] < 0.1 || a25[4] < max(a25[2], a25[6]) {
		t.Errorf("cross traffic on R2-R5: not 3 and 5 beside 4: %.3f", a25[:9])
	}
	if b34[3] < max(b34[2], b34[4]) || b34[5] > 0.01 {
		t.Errorf("cross traffic on R3-R4: no mode at 3, or more than 4: %.3f", b34[:9])
	}
	if b45[6] < b45[5]+b45[7] || b45[1] < b45[2] || b45[4] > b45[6] {
		t.Errorf("cross traffic on R4-R5: no modes at 1 and 6: %.3f", b45[:9])
	}
}

// Figures 3.21 and 3.22: coalescing alone changes only times. With a queue for each
// sender the order is that of the queues, and no pair of neighbours is 4 apart.
func TestFigure322ReceiveQueues(t *testing.T) {
	m := figure37([5]float64{})
	m.Coalescing = &sim.Coalescing{Time: 200 * time.Microsecond, Packets: 16}
	one := asnd(m)
	m.Coalescing.Queues = true
	several := asnd(m)
	t.Logf("pairs that are 4 apart: %.2f with one queue, %.2f with two", one[4], several[4])
	if one[4] < 0.95 || several[4] > 0.1 {
		t.Error("want nearly all with one queue, and few with two")
	}
}
