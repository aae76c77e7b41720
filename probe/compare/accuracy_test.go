package compare_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// group is the network of 3.7.1 in Mbit/s: A-R1, R1-R2, R2-R5 and B-R3, R3-R4, R4-R5.
// Cross traffic is a fraction of each link except the senders' own.
func group(a, b [3]unit.Rate, crossA, crossB float64) sim.Meeting {
	own := func(c [3]unit.Rate, cross float64) (p sim.Path) {
		for i, r := range c {
			hop := link.Spec{Rate: r * unit.Mbit, Queue: simtest.UnboundedQueue}
			if i > 0 && cross > 0 {
				hop.Cross = []link.Cross{{Load: unit.Rate(cross * float64(hop.Rate))}}
			}
			p.Hops = append(p.Hops, hop)
		}
		return p
	}
	return sim.Meeting{
		Branches: []sim.Path{own(a, crossA), own(b, crossB)},
		Shared:   sim.Path{Hops: []link.Spec{{Rate: 10 * unit.Gbit}}, Noise: time.Microsecond, Skew: 5e-5},
	}
}

// joint lets a method send until it has enough samples.
func joint(t *testing.T, n *sim.JointNetwork, next func([]probe.JointSample) (probe.Joint, bool)) (samples []probe.JointSample) {
	t.Helper()
	samples = simtest.SendAll(200, next, func(_ int, j probe.Joint) probe.JointSample { return n.Send(j) })
	if len(samples) == 200 {
		t.Fatal("the method does not terminate")
	}
	return samples
}

// seedMean returns the mean of the seed's ratios over some runs (3.7.1 has 50), each as 1
// or more.
func seedMean(t *testing.T, m sim.Meeting) float64 {
	const runs = 10
	sum, n := 0.0, 0.0
	for i := range uint64(runs) {
		s := compare.PathComp{}
		if r := s.Estimate(joint(t, sim.NewJoint(m, i+1), s.Next)).Ratio; r.Known() {
			sum += math.Max(r.Value, 1/r.Value)
			n++
		}
	}
	return sum / n
}

// Figures 3.18 and 3.20: with cross traffic on all links before the meeting point, and
// bursts behind the faster path's narrow link, the peak of the weighted histogram is at
// 6, the ratio of that link (figure 3.17). The blocks of phase II move it to 4.
func TestFigures318And320(t *testing.T) {
	m := figure37([5]float64{0.1, 0.1, 0.1, 0.5})
	m.Branches[1].Hops[2].Cross[0].Model, m.Branches[1].Hops[2].Cross[0].Shape = link.Pareto, 1.1
	one, two := make([]int, 50), make([]int, 50)
	for i := range uint64(20) {
		method := compare.PathComp{}
		samples := joint(t, sim.NewJoint(m, i+1), method.Next)
		for i, n := range compare.ASND(&samples[0], 0, 1) {
			one[min(i, 49)] += n
		}
		for i, n := range compare.ASND(&samples[len(samples)-1], 0, 1) {
			two[min(i, 49)] += n
		}
	}
	first, second := compare.EstRatio2(one), compare.EstRatio2(two)
	t.Logf("phase I %v: %.2f, phase II %v: %.2f", one[1:10], first, two[1:10], second)
	if first < 5 || math.Abs(second-4) > 0.5 {
		t.Errorf("phase I: %.2f, phase II: %.2f; want nearly 6, and 4", first, second)
	}
}

// Figure 3.23: ratios from 2 to 8, and from 1 to 2, with 30 % of cross traffic. If R4-R5
// is no faster than 1 Gbit/s, 2 is measured as 1.88. Equal paths give more than 1. Above
// 4 the testbed of the text is more accurate than the simulated links, where nearly all
// ASND of 8 have cross traffic in them.
func TestFigure323(t *testing.T) {
	a := [3]unit.Rate{500, 200, 1000}
	for _, c := range []struct {
		name      string
		b         [3]unit.Rate
		low, high float64
	}{
		{"2, large", [3]unit.Rate{1600, 400, 10_000}, 1.8, 2},
		{"4, large", [3]unit.Rate{1600, 800, 10_000}, 3.4, 4},
		{"8, large", [3]unit.Rate{1600, 1600, 10_000}, 5.5, 8},
		{"1, small", [3]unit.Rate{1000, 200, 1000}, 1.02, 1.3},
		{"1.5, small", [3]unit.Rate{1000, 300, 1000}, 1.4, 1.7},
		{"2, small", [3]unit.Rate{1000, 400, 1000}, 1.75, 1.95},
	} {
		got := seedMean(t, group(a, c.b, 0.3, 0.3))
		t.Logf("%s: %.2f", c.name, got)
		if got < c.low || got > c.high {
			t.Errorf("%s: the seed returns %.2f", c.name, got)
		}
	}
}

// Figure 3.24: cross traffic of 10 to 60 % has more effect on the faster path than on the
// slower one.
func TestFigure324(t *testing.T) {
	a, b := [3]unit.Rate{500, 200, 1000}, [3]unit.Rate{1000, 400, 1000}
	slow := [2]float64{seedMean(t, group(a, b, 0.1, 0.3)), seedMean(t, group(a, b, 0.6, 0.3))}
	fast := [2]float64{seedMean(t, group(a, b, 0.3, 0.1)), seedMean(t, group(a, b, 0.3, 0.6))}
	t.Logf("10 and 60 %% on the slower path: %.2f, on the faster: %.2f", slow, fast)
	if math.Abs(slow[1]-2) > 0.2 || fast[1] > fast[0]-0.08 || 2-fast[1] < 2*(2-slow[1]) {
		t.Error("want more effect on the faster path")
	}
}

// drawMeeting draws two paths with a ratio of 1 to 8 or to 1/8, a fifth of them equal,
// with cross traffic of 10 to 60 % on either path, on the narrow link and on the one
// behind it, which has the bandwidth for both.
func drawMeeting(r *rand.Rand) (m sim.Meeting, gamma float64, cross [2]float64) {
	gamma = math.Exp(r.Float64() * math.Log(8))
	if r.IntN(5) == 0 {
		gamma = 1
	}
	slow := 50 * math.Pow(8, r.Float64()) * 1e6
	c := [2]float64{slow, slow * gamma}
	if r.IntN(2) == 0 {
		c[0], c[1] = c[1], c[0]
	}
	for i := range c {
		cross[i] = 0.1 + 0.5*r.Float64()
		traffic := link.Cross{}
		if r.IntN(2) == 0 {
			traffic.Model = link.Pareto
		}
		if r.IntN(2) == 0 {
			traffic.Sizes = []int{64, 590, link.FullFrame, link.FullFrame}
		}
		hop := func(rate, part float64) link.Spec {
			s := link.Spec{Rate: unit.Rate(rate)}
			if part > 0 {
				traffic.Load = unit.Rate(rate * part)
				s.Cross = []link.Cross{traffic}
			}
			return s
		}
		m.Branches = append(m.Branches, sim.Path{Skew: 5e-5 * r.Float64(), Hops: []link.Spec{
			hop(c[i]*(1.2+5*r.Float64()), 0),
			hop(c[i], cross[i]),
			hop(c[i]*max(1.5+6.5*r.Float64(), 1/(1-cross[i])), cross[i]),
		}})
	}
	m.Shared = sim.Path{Hops: []link.Spec{{Rate: unit.Rate((c[0] + c[1]) * (1 + 2*r.Float64()))}}, Noise: time.Microsecond, Skew: -5e-5}
	m.Jitter = time.Duration(r.Float64() * 200e3)
	return m, c[1] / c[0], cross
}

// The error of SmallBlocks is within 5 % on 9 of 10 paths, its intervals hold the true ratio
// as often, and equal paths have no bias. These are 40 of the more than 200 paths from which
// the constants of the method follow.
func TestCompare(t *testing.T) {
	t.Parallel()
	const paths = 40
	r := rand.New(rand.NewPCG(77, 1))
	var off, equal []float64
	covered, told := 0, 0
	for i := range uint64(paths) {
		m, gamma, cross := drawMeeting(r)
		method := compare.SmallBlocks{}
		samples := joint(t, sim.NewJoint(m, i+1), method.Next)
		sent := unit.Bytes(0)
		for _, s := range samples {
			sent += s.Trains[0].Bytes()
		}
		if sent > 9_000_000 {
			t.Errorf("path %d: %v were sent", i, sent)
		}
		e := method.Estimate(samples).Ratio
		if !e.Known() {
			t.Logf("path %d: %s", i, e.Reason)
			continue
		}
		told++
		if e.Low <= gamma && gamma <= e.High {
			covered++
		}
		off = append(off, math.Abs(e.Value/gamma-1))
		if gamma == 1 {
			equal = append(equal, math.Log(e.Value))
		}
		if off[len(off)-1] > 0.05 {
			t.Logf("path %d, cross traffic %.2f: %.3f [%.3f, %.3f] for %.3f", i, cross, e.Value, e.Low, e.High, gamma)
		}
	}
	slices.Sort(off)
	mean := 0.0
	for _, v := range equal {
		mean += v / float64(len(equal))
	}
	p90 := off[len(off)*9/10]
	t.Logf("p90 error %.3f, covered %d of %d, estimated %d of %d; mean logarithm of %d equal paths %.4f", p90, covered, told, told, paths, len(equal), mean)
	if p90 > 0.05 || covered < told*8/10 || told < paths*95/100 || math.Abs(mean) > 0.01 {
		t.Error("want an error of 5 %, 85 to 95 % covered, 98 % estimated, and no bias")
	}
}

// like returns the result of SmallBlocks for a meeting.
func like(t *testing.T, m sim.Meeting, seed uint64, harm func(*probe.JointSample)) compare.Result {
	t.Helper()
	n := sim.NewJoint(m, seed)
	method := compare.SmallBlocks{}
	samples := simtest.SendAll(200, method.Next, func(_ int, j probe.Joint) probe.JointSample {
		s := n.Send(j)
		if harm != nil {
			harm(&s)
		}
		return s
	})
	return method.Estimate(samples)
}

// Faults of hosts do not make the result of SmallBlocks wrong: loss, duplicates, reordered
// packets, coalescing with one queue, a receiver or a sender that stalls, starts with
// jitter, truncated samples.
func TestCompareFaults(t *testing.T) {
	t.Parallel()
	calm := func() sim.Meeting {
		return group([3]unit.Rate{500, 200, 1000}, [3]unit.Rate{1600, 500, 2000}, 0.2, 0.2)
	}
	coalesced, suspended, sleeping, jitter := calm(), calm(), calm(), calm()
	coalesced.Coalescing = &sim.Coalescing{Time: 100 * time.Microsecond, Packets: 64}
	suspended.Shared.Hops[0].Suspension = &link.Suspension{Packets: 200, Time: 5 * time.Millisecond}
	sleeping.Branches[1].Sleep = link.Active{On: 30 * time.Millisecond, Off: 5 * time.Millisecond}
	jitter.Jitter = time.Millisecond
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name string
		m    sim.Meeting
		harm func(*probe.JointSample)
	}{
		{"none", calm(), nil},
		{"coalescing", coalesced, nil},
		{"suspended receiver", suspended, nil},
		{"sleeping sender", sleeping, nil},
		{"jitter", jitter, nil},
		{"5 % loss", calm(), func(s *probe.JointSample) {
			s.Arrived = slices.DeleteFunc(s.Arrived, func(probe.JointArrival) bool { return rng.IntN(20) == 0 })
		}},
		{"duplicates", calm(), func(s *probe.JointSample) {
			for i := len(s.Arrived) - 1; i >= 0; i-- {
				if rng.IntN(20) == 0 {
					s.Arrived = slices.Insert(s.Arrived, i+1, s.Arrived[i])
				}
			}
		}},
		{"out of order", calm(), func(s *probe.JointSample) {
			for i := 20; i < len(s.Arrived); i += 50 {
				late := s.Arrived[i-20]
				copy(s.Arrived[i-20:i], s.Arrived[i-19:i+1])
				s.Arrived[i] = late
			}
		}},
		{"clock step", calm(), func(s *probe.JointSample) {
			for i := range s.Arrived[len(s.Arrived)/2:] {
				s.Arrived[len(s.Arrived)/2+i].At += 3e9
			}
		}},
		{"truncated", calm(), func(s *probe.JointSample) { s.Arrived = s.Arrived[:len(s.Arrived)*2/3] }},
	} {
		r := like(t, c.m, 3, c.harm)
		t.Logf("%s: %v %v", c.name, r.Ratio, r.Notes)
		if e := r.Ratio; e.Known() && (e.Low > 2.5 || e.High < 2.5) && math.Abs(e.Value/2.5-1) > 0.01 {
			t.Errorf("%s: SmallBlocks returns %v, want 2.5", c.name, e)
		}
		if !r.Ratio.Known() && c.name != "truncated" {
			t.Errorf("%s: %s", c.name, r.Ratio.Reason)
		}
	}
}

// Two receive queues with coalescing, a path that changes, and a sender without arrivals
// are detected.
func TestCompareNoEstimate(t *testing.T) {
	m := group([3]unit.Rate{500, 200, 1000}, [3]unit.Rate{1600, 500, 2000}, 0.2, 0.2)
	for _, c := range []sim.Coalescing{
		{Time: 10 * time.Microsecond, Packets: 64}, {Time: 50 * time.Microsecond, Packets: 64}, {Time: 500 * time.Microsecond, Packets: 32}, {Time: time.Millisecond, Packets: 1000},
	} {
		c.Queues = true
		m.Coalescing = &c
		if r := like(t, m, 1, nil); r.Ratio.Known() || !strings.Contains(r.Ratio.Reason, "queues") {
			t.Errorf("%v: %v", c, r.Ratio)
		}
	}
	m.Coalescing = nil
	// Two paths cannot be compared if one changes half way.
	other := m
	other.Branches = []sim.Path{m.Branches[0], group([3]unit.Rate{500, 200, 1000}, [3]unit.Rate{1600, 300, 2000}, 0.2, 0.2).Branches[1]}
	method := compare.SmallBlocks{}
	samples := append(joint(t, sim.NewJoint(m, 1), method.Next)[:6], joint(t, sim.NewJoint(other, 2), method.Next)[1:6]...)
	if r := method.Estimate(samples); r.Ratio.Known() || !strings.Contains(r.Ratio.Reason, "changed") {
		t.Errorf("a path that changes: %v", r.Ratio)
	}
	for silent := range 2 {
		r := like(t, m, 1, func(s *probe.JointSample) {
			s.Arrived = slices.DeleteFunc(s.Arrived, func(a probe.JointArrival) bool { return a.From == silent })
		})
		if r.Ratio.Known() || !strings.Contains(r.Ratio.Reason, "silent") {
			t.Errorf("silent sender %d: %v", silent, r.Ratio)
		}
	}
}

// A narrow link that both share does not change the ratio of the parts before it, and is
// reported; a wide one is not.
func TestCompareSharedNarrow(t *testing.T) {
	for _, c := range []struct {
		shared unit.Rate
		narrow bool
	}{{150, true}, {300, true}, {2000, false}} {
		m := group([3]unit.Rate{1000, 200, 1000}, [3]unit.Rate{1600, 500, 2000}, 0.2, 0.2)
		m.Shared.Hops[0].Rate = c.shared * unit.Mbit
		m.Shared.Hops[0].Queue = simtest.UnboundedQueue
		r := like(t, m, 1, nil)
		t.Logf("%v Mbit/s: %v %v", c.shared, r.Ratio, r.Notes)
		if math.Abs(r.Ratio.Value/2.5-1) > 0.05 || r.SharedNarrow != c.narrow || (len(r.Notes) > 0) != c.narrow {
			t.Errorf("%v Mbit/s shared: %+v", c.shared, r)
		}
	}
}

// A shaper's bucket that lasts for some blocks gives two ratios: of capacities, and of
// long transfers.
func TestCompareBucket(t *testing.T) {
	m := group([3]unit.Rate{1000, 200, 1000}, [3]unit.Rate{1600, 500, 2000}, 0, 0)
	m.Branches[1].Hops[1].Bucket = &link.Bucket{Rate: 20 * unit.Mbit, Size: 100_000}
	r := like(t, m, 1, nil)
	t.Log(r.Ratio, r.Long, r.Notes)
	if math.Abs(r.Ratio.Value/2.5-1) > 0.05 || r.Long == nil || math.Abs(r.Long.Value/0.1-1) > 0.05 {
		t.Errorf("%+v, long %v; want 2.5 and 0.1", r, r.Long)
	}
}

// Four senders, compared in pairs, are ranked on one scale.
func TestCompareRank(t *testing.T) {
	rates := []unit.Rate{200, 600, 100, 400}
	var pairs []compare.Pair
	for b := range rates {
		for a := range b {
			m := group([3]unit.Rate{1600, rates[a], 2000}, [3]unit.Rate{1600, rates[b], 2000}, 0.2, 0.3)
			pairs = append(pairs, compare.Pair{A: a, B: b, Result: like(t, m, uint64(a*4+b+1), nil)})
		}
	}
	got := compare.Rank(len(rates), pairs)
	for i, sender := range []int{1, 3, 0, 2} {
		want := float64(rates[sender]) / 600
		if got[i].Sender != sender || math.Abs(got[i].Relative.Value/want-1) > 0.03 {
			t.Errorf("place %d is %+v, want sender %d with %.3f", i+1, got[i], sender, want)
		}
	}
}
