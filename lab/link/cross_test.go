package link

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// Each model offers its load, over 60 s within 1 %, and the log gives the exact available bandwidth.
func TestCrossLoad(t *testing.T) {
	for _, c := range []Cross{
		{Load: 40 * unit.Mbit}, {Load: 40 * unit.Mbit, Model: Pareto}, {Load: 40 * unit.Mbit, Model: Constant},
		{Load: 40 * unit.Mbit, Sizes: []int{60, 576, 1514}},
	} {
		s := Spec{Rate: 100 * unit.Mbit, Cross: []Cross{c}, Queue: Amount{Segments: 1000}}
		log := play(New(s, 5, 0), greedy(1, 10*ms, 60*second), 60*second)
		got := float64(Available(s, log, 0, 60*second))
		if math.Abs(got-60e6) > 0.01*60e6 {
			t.Errorf("%s: %.2f Mbit/s are available, want 60", c.Model, got/1e6)
		}
	}
}

// A Poisson process has exponential intervals, whose standard deviation is their mean. Pareto
// intervals are never below the minimum.
func TestCrossSpaces(t *testing.T) {
	gaps := func(m Model) (mean, deviation, shortest float64) {
		s := newSource(Cross{Load: 12_112_000, Model: m}, 1, 4, 0, 0)
		shortest = math.Inf(1)
		const n = 200_000
		sum, squares := 0.0, 0.0
		for range n {
			before := s.next
			s.step()
			g := s.next - before
			sum += g
			squares += g * g
			shortest = min(shortest, g)
		}
		mean = sum / n
		return mean / 1e6, math.Sqrt(squares/n-mean*mean) / 1e6, shortest / 1e6
	}
	if mean, dev, _ := gaps(Poisson); math.Abs(mean-1) > 0.01 || math.Abs(dev-1) > 0.02 {
		t.Errorf("Poisson: mean %.3f ms, deviation %.3f", mean, dev)
	}
	if mean, dev, shortest := gaps(Pareto); math.Abs(mean-1) > 0.05 || dev < 1.5 || math.Abs(shortest-0.9/1.9) > 0.001 {
		t.Errorf("Pareto: mean %.3f ms, deviation %.3f, shortest %.4f", mean, dev, shortest)
	}
	if mean, dev, _ := gaps(Constant); math.Abs(mean-1) > 1e-6 || dev > 1e-3 {
		t.Errorf("constant: mean %.3f ms, deviation %.5f", mean, dev)
	}
}

// A probe finds cross packets before it in the queue: the link is FIFO, transmissions do not overlap,
// and no time is wasted.
func TestCrossInterleaves(t *testing.T) {
	s := Spec{Rate: 100 * unit.Mbit, Cross: []Cross{{Load: 70 * unit.Mbit, Model: Pareto}}, Queue: Amount{Segments: 1000}}
	log := play(New(s, 5, 0), greedy(1, 800*us, 10*second), 11*second)
	byNumber := map[uint64]Result{}
	highest := uint64(0)
	for _, r := range log {
		byNumber[r.Number] = r
		highest = max(highest, r.Number)
	}
	busy, waited := int64(0), 0
	for n := uint64(1); n <= highest; n++ {
		r, ok := byNumber[n]
		if !ok || r.Fate != Delivered {
			continue
		}
		took := int64(r.Size) * 8e9 / 100e6
		if want := max(r.Arrived, busy) + took; r.Departed < want-1 || r.Departed > want+1 {
			t.Fatalf("packet %d departed at %d, want %d", n, r.Departed, want)
		}
		if !r.Cross && busy > r.Arrived {
			waited++
		}
		busy = r.Departed
	}
	// A probe is queued with the probability that the link is busy: 0.7 of cross traffic and a little
	// of itself.
	if part := float64(waited) / 12_500; part < 0.6 || part > 0.85 {
		t.Errorf("%.2f of the probes waited", part)
	}
}

func TestCrossStartsAndStops(t *testing.T) {
	s := Spec{Rate: 100 * unit.Mbit, Cross: []Cross{{Load: 50 * unit.Mbit, Start: 2 * time.Second, Stop: 4 * time.Second}}}
	log := play(New(s, 1, 0), greedy(1, 100*ms, 6*second), 6*second)
	for _, c := range []struct{ from, to, want int64 }{{0, 2, 100}, {2, 4, 50}, {4, 6, 100}} {
		if got := float64(Available(s, log, c.from*second, c.to*second)) / 1e6; math.Abs(got-float64(c.want)) > 1 {
			t.Errorf("from %d to %d s %.1f Mbit/s are available, want %d", c.from, c.to, got, c.want)
		}
	}
}

// A sender that sends more does not increase the available bandwidth: neither by delaying cross
// traffic in a long queue, nor by pushing it out of a short one.
func TestAvailableBesideAnOverload(t *testing.T) {
	for _, queue := range []Amount{{Time: 10 * time.Second}, {Segments: 100}} {
		for _, at := range []struct{ from, to int64 }{{0, 6}, {1, 2}, {4, 5}} {
			s := Spec{Rate: 100 * unit.Mbit, Cross: []Cross{{Load: 60 * unit.Mbit, Model: Constant}}, Queue: queue}
			// 121 Mbit/s beside them.
			log := play(New(s, 5, 0), greedy(1, 100*us, 6*second), 30*second)
			if got := float64(Available(s, log, at.from*second, at.to*second)) / 1e6; math.Abs(got-40) > 0.1 {
				t.Errorf("queue %+v, from %d to %d s: %.2f Mbit/s are available, want 40", queue, at.from, at.to, got)
			}
		}
	}
}

// Cross traffic above the link's rate leaves nothing available.
func TestAvailableOfNothing(t *testing.T) {
	s := Spec{Rate: 100 * unit.Mbit, Cross: []Cross{{Load: 130 * unit.Mbit, Stop: 5 * time.Second}}, Queue: Amount{Time: 100 * time.Millisecond}}
	log := play(New(s, 5, 0), greedy(1, 100*ms, 6*second), 7*second)
	if got := Available(s, log, second, 5*second); got > unit.Mbit/10 {
		t.Errorf("%v are available on an overloaded link", got)
	}
	// The packets queued at its end are sent within the queue's 100 ms.
	if got := float64(Available(s, log, 5*second+101*ms, 6*second)) / 1e6; got < 99.9 {
		t.Errorf("%.1f Mbit/s are available after the cross traffic has ended", got)
	}
}

// Cross traffic uses tokens like other traffic.
func TestCrossTakesTokens(t *testing.T) {
	s := Spec{Rate: unit.Gbit, Bucket: &Bucket{Rate: 50 * unit.Mbit, Size: 30_000}, Cross: []Cross{{Load: 20 * unit.Mbit}}, Queue: Amount{Segments: 100}}
	log := play(New(s, 1, 0), greedy(1, 100*us, 20*second), 20*second)
	got := bytesIn(log, second, 20*second) * 8 / 19
	virtual := 0.0
	for _, r := range log {
		if r.Cross && r.Fate == Delivered && r.Departed >= second && r.Departed < 20*second {
			virtual += float64(r.Size) * 8 / 19
		}
	}
	if all := got + virtual; math.Abs(all-50e6) > 0.005*50e6 || virtual < 1e6 {
		t.Errorf("a greedy sender got %.2f Mbit/s, the cross traffic %.2f: want 50 together", got/1e6, virtual/1e6)
	}
	if left := float64(Available(s, log, second, 20*second)); math.Abs(left-30e6) > 0.01*30e6 {
		t.Errorf("%.2f of 50 Mbit/s are available beside 20", left/1e6)
	}
}
