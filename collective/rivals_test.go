package collective_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

var fiveShares = []float64{8, 4, 2, 1, 1}

// rivals are greedy connections beside a set of five that were paced at 8:4:2:1:1 and
// then become greedy as well, on 50 Mbit/s and 20 ms.
type rivals struct{ n, room int }

// run returns the rate of each connection of the set, in Mbit/s.
func (r rivals) run(controlled bool) (out []float64) {
	s := &sim{rate: 50e6, delay: 20 * time.Millisecond, room: r.room, rng: rand.New(rand.NewPCG(1, 2)), control: &collective.Control{}}
	const calm = 20 * time.Second
	for i, w := range fiveShares {
		t := s.newTCP(collective.ID(i+1), low)
		t.maxWindow, t.observed = math.Inf(1), true
		s.set = append(s.set, t)
		t.pacedUntil(calm, 0.8*s.rate*w/16)
	}
	if controlled {
		s.look()
	}
	s.run(calm)
	for i := range r.n {
		t := s.newTCP(collective.ID(100+i), low)
		t.maxWindow, t.backlog = math.Inf(1), math.Inf(1)
		s.after(time.Duration(i)*100*time.Millisecond, t.send)
	}
	s.run(2 * calm)
	before := make([]float64, len(s.set))
	for i, t := range s.set {
		before[i] = t.acked
	}
	s.run(5 * calm)
	for i, t := range s.set {
		out = append(out, (t.acked-before[i])*8/60e6)
	}
	return out
}

// With rivals the set keeps its proportions, and its total is about that of plain TCP:
// neither starved nor greedier than the rest. With a queue of a tenth of the proper
// length, and 20 rivals, windows of two packets are too small for either; the result is
// only logged.
func TestControlRivals(t *testing.T) {
	for _, r := range []rivals{{20, 400}, {20, 200}, {20, 50}, {5, 400}, {5, 200}, {5, 50}, {1, 400}, {1, 200}, {1, 50}, {0, 400}, {0, 50}} {
		t.Run(fmt.Sprintf("%d-%d", r.n, r.room), func(t *testing.T) {
			plain, ours := 0.0, 0.0
			for _, v := range r.run(false) {
				plain += v
			}
			got := r.run(true)
			for _, v := range got {
				ours += v
			}
			t.Logf("%.2f: %.2f Mbit/s, plain TCP %.2f", got, ours, plain)
			if r == (rivals{20, 50}) {
				return
			}
			for i, w := range fiveShares {
				if want := ours * w / 16; math.Abs(got[i]/want-1) > 0.07 {
					t.Errorf("rate of connection %d is %.2f Mbit/s, want %.2f", i+1, got[i], want)
				}
			}
			if ours < 0.5*plain || ours > 1.5*plain {
				t.Errorf("total rate is %.2f Mbit/s, with plain TCP %.2f", ours, plain)
			}
		})
	}
}

// A connection whose receiver takes two packets at a time has the rate that this allows.
// The others use all of the rest in their proportions.
func TestControlTinyWindow(t *testing.T) {
	s := &sim{rate: 50e6, delay: 20 * time.Millisecond, room: 200, rng: rand.New(rand.NewPCG(1, 2)), control: &collective.Control{}}
	for i, w := range []float64{4, 2, 1} {
		c := s.newTCP(collective.ID(i+1), low)
		c.maxWindow, c.observed = math.Inf(1), true
		s.set = append(s.set, c)
		s.control.SetWeight(c.id, w)
		c.backlog = math.Inf(1)
		s.after(0, c.send)
	}
	s.look()
	s.run(20 * time.Second)
	s.set[1].maxWindow = 2
	s.run(30 * time.Second)
	var before [3]float64
	for i, c := range s.set {
		before[i] = c.acked
	}
	s.run(60 * time.Second)
	rate := func(i int) float64 { return (s.set[i].acked - before[i]) * 8 / 30e6 }
	a, b, c := rate(0), rate(1), rate(2)
	t.Logf("%.2f, %.2f and %.2f Mbit/s", a, b, c)
	if math.Abs(a/c/4-1) > 0.07 || a+b+c < 44 {
		t.Errorf("rates are %.2f, %.2f and %.2f Mbit/s, want 4 to 1 and all of 47.8", a, b, c)
	}
	if b > 1.3 {
		t.Errorf("rate with two packets in 20 ms is %.2f Mbit/s", b)
	}
}
