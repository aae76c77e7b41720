package stripe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A direct connection has the least of what the path carries, CUBIC's rate at the loss, and a window in each
// round-trip time.
func TestDirectRate(t *testing.T) {
	const mbit = 1e6 / 8
	const millisecond = time.Millisecond
	for _, c := range []struct {
		name string
		path DirectPath
		want float64 // Mbit/s
	}{
		{"nothing is known", DirectPath{}, 0},
		{"no loss", DirectPath{Carried: 100 * mbit, RTT: 25 * millisecond, Segment: 1448, Window: 3 << 20}, 100},
		{"no loss, window unknown", DirectPath{Carried: 100 * mbit, RTT: 160 * millisecond, Segment: 1448}, 100},
		{"the window at 160 ms", DirectPath{Carried: 1000 * mbit, RTT: 160 * millisecond, Segment: 1448, Window: 3 << 20}, 157.3},
		{"1 % loss at 25 ms, as Reno", DirectPath{Carried: 100 * mbit, Loss: 0.01, RTT: 25 * millisecond, Segment: 1448, Window: 3 << 20}, 5.68},
		{"1 % loss on a slower path", DirectPath{Carried: 2 * mbit, Loss: 0.01, RTT: 25 * millisecond, Segment: 1448}, 2},
		{"0.01 % loss at 100 ms, as CUBIC", DirectPath{Carried: 1000 * mbit, Loss: 1e-4, RTT: 100 * millisecond, Segment: 1448}, 21.7},
		{"nearly all is lost", DirectPath{Carried: 100 * mbit, Loss: 1, RTT: 100 * millisecond, Segment: 1250}, 0.122},
	} {
		if got := c.path.Rate() / mbit; math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: %.4g Mbit/s, want %.4g", c.name, got, c.want)
		}
	}
}

// The average windows are those of RFC 9438, table 1 (a round-trip time of 0.1 s); at a high loss Reno's is the larger.
func TestCUBICWindow(t *testing.T) {
	for loss, want := range map[float64]float64{1e-2: 12, 1e-3: 38, 1e-4: 187, 1e-5: 1054, 1e-6: 5926, 1e-7: 33_325, 1e-8: 187_400} {
		if got := cubicWindow(loss, 100*time.Millisecond); math.Abs(got-want) > 0.025*want {
			t.Errorf("loss %g: %.1f segments, want %g", loss, got, want)
		}
	}
}

// What CUBIC loses counts: independent losses by their number, and losses of a full queue once.
func TestLossMeter(t *testing.T) {
	type interval struct {
		sent, lost uint64
		bbr        bool
	}
	random := func(n int, loss float64) (all []interval) {
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			i := interval{sent: 200_000}
			for range i.sent / 1000 {
				if r.Float64() < loss {
					i.lost += 1000
				}
			}
			all = append(all, i)
		}
		return all
	}
	bursts := random(200, 0)
	for n := range bursts {
		if n%10 == 0 {
			bursts[n].lost = 20_000
		}
	}
	bbr := random(20, 0.2)
	for n := range bbr {
		bbr[n].bbr = true
	}
	for _, c := range []struct {
		name string
		all  []interval
		want float64
		ok   bool
	}{
		{"nothing", nil, 0, false},
		{"little", random(4, 0.01), 0, false},
		{"few bytes in an interval", []interval{{sent: 60_000}, {sent: 60_000}}, 0, false},
		{"no loss", random(10, 0), 0, true},
		{"0.1 %", random(400, 0.001), 0.001, true},
		{"1 %", random(400, 0.01), 0.01, true},
		{"10 %", random(400, 0.1), 0.1, true},
		{"a slow start that overflows the queue", append([]interval{{sent: 200_000, lost: 100_000}}, random(400, 0.001)...), 0.001, true},
		{"a full queue at times", bursts, 0.1 / 200, true},
		{"BBR", bbr, 0, false},
		{"CUBIC after BBR", slices.Concat(bbr, random(400, 0.001)), 0.001, true},
		{"what was long ago", slices.Concat(random(600, 0.01), random(3000, 0.001)), 0.001, true},
		{"more than was sent", []interval{{sent: 500_000, lost: 1e6}, {sent: 600_000, lost: 1e6}}, 1, true},
	} {
		var m LossMeter
		var sent, lost uint64
		now := time.Duration(0)
		for _, i := range c.all {
			for range 2 { // the first one is within the interval
				now += 50 * time.Millisecond
				sent, lost = sent+i.sent/2, lost+i.lost/2
				m.Add(now, sent, lost, 20*time.Millisecond, !i.bbr)
			}
		}
		if got, ok := m.Rate(1000); ok != c.ok || math.Abs(got-c.want) > 0.2*c.want {
			t.Errorf("%s: %g, %v, want %g", c.name, got, ok, c.want)
		}
	}
}
