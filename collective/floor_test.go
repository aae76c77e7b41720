package collective_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

// crowd is a set of four connections of 4:2:1:1, that were paced at 84 % of the link and become greedy as rivals begin.
type crowd struct {
	rate   float64 // Mbit/s
	rtt    time.Duration
	queue  float64 // BDP
	rivals int
	on     time.Duration // rivals pause for as long after as long; 0 is never
}

func (c crowd) String() string {
	return fmt.Sprintf("%gM-%v-%gBDP-%d-%v", c.rate, c.rtt, c.queue, c.rivals, c.on)
}

var fourShares = []float64{4, 2, 1, 1}

type crowdResult struct {
	windows [][]float64 // by 5 s, of each member in Mbit/s
	resent  int
}

func (r crowdResult) total(w int) (sum float64) {
	for _, v := range r.windows[w] {
		sum += v
	}
	return sum
}

const crowdCalm, crowdWindows, crowdWindow = 20 * time.Second, 12, 5 * time.Second

func (c crowd) run(seed uint64, controlled bool) (out crowdResult) {
	bdp := c.rate * 1e6 * c.rtt.Seconds() / packet
	s := &sim{rate: c.rate * 1e6, delay: c.rtt, room: max(int(bdp*c.queue), 4), rng: rand.New(rand.NewPCG(seed, 2)), control: &collective.Control{}}
	for i, w := range fourShares {
		t := s.newTCP(collective.ID(i+1), low)
		t.maxWindow, t.observed, t.sack = math.Inf(1), true, true
		s.set = append(s.set, t)
		s.after(time.Duration(i)*3*time.Millisecond, func() { t.pacedUntil(crowdCalm, 0.84*s.rate*w/8) })
	}
	if controlled {
		s.look()
	}
	s.run(crowdCalm)
	for i := range c.rivals {
		t := s.newTCP(collective.ID(100+i), low)
		t.maxWindow, t.backlog, t.sack = math.Inf(1), math.Inf(1), true
		s.after(time.Duration(i)*10*time.Millisecond, t.send)
		if c.on == 0 {
			continue
		}
		var toggle func()
		toggle = func() {
			if t.backlog > 0 {
				t.backlog = 0
			} else {
				t.backlog, t.cwnd = math.Inf(1), 10
				t.send()
			}
			s.after(c.on, toggle)
		}
		s.after(c.on, toggle)
	}
	again := int(s.both(resent))
	for range crowdWindows {
		before := make([]float64, len(s.set))
		for i, t := range s.set {
			before[i] = t.acked
		}
		s.run(s.now + crowdWindow)
		rates := make([]float64, len(s.set))
		for i, t := range s.set {
			rates[i] = (t.acked - before[i]) * 8 / crowdWindow.Seconds() / 1e6
		}
		out.windows = append(out.windows, rates)
	}
	out.resent = int(s.both(resent)) - again
	return out
}

// Beside a few rivals or many, that stay or come and go, a set carries what plain TCP carries, and its connections keep their proportions. What the rest of the networks of
// bench collective give, only real TCP shows: it finds losses in small windows otherwise than this one.
func TestFloor(t *testing.T) {
	for _, c := range []crowd{
		{50, 20 * time.Millisecond, 1, 1, 0}, {50, 20 * time.Millisecond, 1, 4, 0}, {50, 20 * time.Millisecond, 1, 2, 10 * time.Second},
		{50, 20 * time.Millisecond, 4, 1, 10 * time.Second}, {50, 20 * time.Millisecond, 4, 2, 0}, {50, 20 * time.Millisecond, 4, 4, 0},
		{10, 20 * time.Millisecond, 4, 1, 0}, {10, 20 * time.Millisecond, 4, 4, 0}, {10, 20 * time.Millisecond, 4, 4, 10 * time.Second},
		{50, 100 * time.Millisecond, 1, 1, 0}, {50, 100 * time.Millisecond, 1, 4, 0},
	} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			plain, ours := c.run(1, false), c.run(1, true)
			carried, without := 0.0, 0.0
			for w := range crowdWindows {
				carried, without = carried+ours.total(w), without+plain.total(w)
				if part := ours.total(w) / plain.total(w); part < 0.78 {
					t.Errorf("the set carries %.0f %% of plain TCP's in the %d. 5 s", 100*part, w+1)
				}
				for i, share := range fourShares {
					if off := math.Abs(ours.windows[w][i]/ours.total(w)*8/share - 1); w > 0 && off > 0.07 {
						t.Errorf("connection %d is %.0f %% off its proportion in the %d. 5 s", i+1, 100*off, w+1)
					}
				}
			}
			t.Logf("carried %.0f %% of plain TCP's %.1f Mbit/s, resent %d segments, plain TCP %d", 100*carried/without, without/crowdWindows, ours.resent, plain.resent)
			if carried < 0.9*without {
				t.Errorf("the set carries %.0f %% of plain TCP's", 100*carried/without)
			}
		})
	}
}
