package share_test

import (
	"math"
	"slices"
	"testing"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/share/sharetest"
	"headgate.dev/headgate/unit"
)

// TestFigure31: the last cycle of each interval of figure 3.1, with the rates of the figure. Two
// differ from its drawing, which rounds: 1.33 and 2.66 are 4/3 and 8/3, and 1.06 and 7.44 are
// 1.0625 and 7.4375. One differs from its text: in interval d the algorithm withholds 5 % of
// the 0.5 Gbit/s that QoS2 leaves unused, so best effort gets 3.975 and not 4.
func TestFigure31(t *testing.T) {
	queuePerFlow := sharetest.DiffServ
	queuePerFlow.Classes = [][]int{{1}, {2}, {share.BestEffort}}
	for _, c := range []struct {
		method sharetest.Method
		want   [4][]unit.Rate // of QoS1, QoS2 and best effort, in intervals a to d
	}{
		{sharetest.AQoS, [4][]unit.Rate{mbits(1000, 2000, 6000), mbits(1000, 3500, 5500), mbits(2500, 3500, 4000), mbits(4500, 1500, 3975)}},
		{queuePerFlow, [4][]unit.Rate{mbits(1000, 2000, 6000), mbits(1000, 3000, 6000), {1333333333, 2666666667, 6 * unit.Gbit}, {1062500000, 1500000000, 7437500000}}},
		{sharetest.StaticMeters, [4][]unit.Rate{mbits(1000, 2000, 6000), mbits(1000, 2000, 6000), mbits(1000, 2000, 6000), mbits(1000, 1500, 7000)}},
		{sharetest.Hybrid, [4][]unit.Rate{mbits(1000, 2000, 6000), mbits(1000, 2000, 6000), mbits(1000, 2000, 6000), mbits(1000, 1500, 7500)}},
	} {
		var offered [][]unit.Rate
		for _, f := range sharetest.Figure31 {
			offered = append(offered, f.Offered)
		}
		run := sharetest.Run(c.method, sharetest.Figure31Network(), 0, offered, sharetest.IntervalCycles)
		for k, want := range c.want {
			got := run[(k+1)*sharetest.IntervalCycles-1].Delivered
			if !slices.Equal(got, want) {
				t.Errorf("%s, interval %s: %v, want %v", c.method.Name, sharetest.Figure31[k].Name, got, want)
			}
		}
	}
}

func mbits(rates ...unit.Rate) []unit.Rate {
	for i := range rates {
		rates[i] *= unit.Mbit
	}
	return rates
}

// gains are the means over seeds of what a method delivers, relative to queues, in percent.
type gains struct{ qos, total, lost float64 }

func compare(m sharetest.Method, s sharetest.Scenario, offered func(seed uint64) [][]unit.Rate, cycles int, seeds uint64) (g gains) {
	n := s.Network(1)
	for seed := range seeds {
		rates := offered(seed)
		queueQoS, queueTotal := sharetest.Mean(n, sharetest.Run(sharetest.DiffServ, n, sharetest.Bottleneck, rates, cycles))
		idealQoS, _ := sharetest.Mean(n, sharetest.Ideal(n, rates, cycles))
		qos, total := sharetest.Mean(n, sharetest.Run(m, n, sharetest.Bottleneck, rates, cycles))
		g.qos += 100 * (qos/queueQoS - 1) / float64(seeds)
		g.total += 100 * (total/queueTotal - 1) / float64(seeds)
		g.lost += 100 * (1 - qos/idealQoS) / float64(seeds)
	}
	return g
}

// The gains and the total of the thesis (chapter 5): the gains of the other scenarios are drawn
// in figure 5.8 only.
const (
	paperRandom20     = 4.40
	paperControlled50 = 18.57
	paperTotal        = -2.4
	paperWithin       = 3 // percentage points
)

func near(got, paper float64) bool { return math.Abs(got-paper) <= paperWithin }

// TestThesisWithoutNoise: with senders that keep their rates exactly, the algorithm reproduces the
// signs of the thesis, its gain at 20 % random, the growth of gains with best effort, and the
// loss of total throughput. At 50 % controlled it gains 26.5 % and not 18.6: queues give the
// QoS flows exactly 2.5 Mbit/s, the flows offer 3.195 (+27.8 %), and 18.6 % would be a loss of
// 7.2 % of what they offer. This algorithm loses 1.0 %, within the cycles after a change.
//
// No exact network has the numbers of the thesis. Its worst case is 20 % random, with 4.40 %, so
// it must gain as much at 20 % controlled, where flows offer only 3.9 % more than queues deliver.
// The thesis itself reports that its queues delivered less than they should, and its meters too
// (chapter 6). TestThesisWithNoise adds the part that senders can explain.
func TestThesisWithoutNoise(t *testing.T) {
	previous := 0.0
	for _, s := range sharetest.Scenarios {
		controlled := compare(sharetest.AQoS, s, func(uint64) [][]unit.Rate { return s.Controlled() }, sharetest.IntervalCycles, 1)
		random := compare(sharetest.AQoS, s, s.Random, sharetest.IntervalCycles, 20)
		t.Logf("%d %%: controlled QoS %+.2f %%, total %+.2f %%, lost %.2f %%; random QoS %+.2f %%, total %+.2f %%, lost %.2f %%", s.Unreserved,
			controlled.qos, controlled.total, controlled.lost, random.qos, random.total, random.lost)
		if s.Unreserved == 20 && !near(random.qos, paperRandom20) {
			t.Errorf("20 %% random: QoS gains %.2f %%, want %.2f %% +- %d", random.qos, paperRandom20, paperWithin)
		}
		for _, g := range []gains{controlled, random} {
			if g.total >= 0 || !near(g.total, paperTotal) {
				t.Errorf("%d %%: the total changes by %.2f %%, want %.2f %% +- %d, and a loss", s.Unreserved, g.total, paperTotal, paperWithin)
			}
		}
		if controlled.qos <= previous {
			t.Errorf("%d %%: QoS gains %.2f %%, want more than the %.2f %% of less best effort", s.Unreserved, controlled.qos, previous)
		}
		previous = controlled.qos
		if s.Unreserved == 50 && (math.Abs(controlled.qos-26.5) > 0.5 || controlled.lost > 1.5) {
			t.Errorf("50 %% controlled: QoS gains %.2f %% and loses %.2f %% of what it offers, want 26.5 +- 0.5 and at most 1.5", controlled.qos, controlled.lost)
		}
	}
}

// TestThesisWithNoise: the thesis has fluctuations of its senders (section 5.1.3), does not give
// their size, and cannot distinguish them from trends (CALC-WINDOW is 0). Here they have a standard
// deviation of 7 %. QoS flows then lose 3 % of their traffic, of the 5 % that the thesis measured,
// and all its numbers are within 3 points. From 6.5 to 8 % the same is true; at 5 % the gain at 50 %
// controlled is 22.5 %.
func TestThesisWithNoise(t *testing.T) {
	const deviation, seeds = 0.07, 20
	for _, s := range sharetest.Scenarios {
		controlled := compare(sharetest.AQoS, s, func(seed uint64) [][]unit.Rate {
			return sharetest.Noisy(s.Controlled(), sharetest.IntervalCycles, deviation, seed)
		}, 1, seeds)
		random := compare(sharetest.AQoS, s, func(seed uint64) [][]unit.Rate {
			return sharetest.Noisy(s.Random(seed), sharetest.IntervalCycles, deviation, seed)
		}, 1, seeds)
		t.Logf("%d %%: controlled QoS %+.2f %%, total %+.2f %%, lost %.2f %%; random QoS %+.2f %%, total %+.2f %%, lost %.2f %%", s.Unreserved,
			controlled.qos, controlled.total, controlled.lost, random.qos, random.total, random.lost)
		if s.Unreserved == 20 && !near(random.qos, paperRandom20) {
			t.Errorf("20 %% random: QoS gains %.2f %%, want %.2f %% +- %d", random.qos, paperRandom20, paperWithin)
		}
		if s.Unreserved == 50 && !near(controlled.qos, paperControlled50) {
			t.Errorf("50 %% controlled: QoS gains %.2f %%, want %.2f %% +- %d", controlled.qos, paperControlled50, paperWithin)
		}
		for _, g := range []gains{controlled, random} {
			if !near(g.total, paperTotal) {
				t.Errorf("%d %%: the total changes by %.2f %%, want %.2f %% +- %d", s.Unreserved, g.total, paperTotal, paperWithin)
			}
			if g.lost < 2.5 || g.lost > 5 {
				t.Errorf("%d %%: QoS flows lose %.2f %% of their traffic, want 2.5 to 5", s.Unreserved, g.lost)
			}
		}
	}
}

// TestScenarioOrder: in every scenario, with the same rates for all, QoS flows get most from the
// oracle, then from the adaptive algorithm, queues, and meters at their reservations, which the
// hybrid has too. The totals of the thesis have static metering above queues at 30 and 40 %, of
// which it says that "the situation should be consistently reversed" (chapter 6), as it is here.
func TestScenarioOrder(t *testing.T) {
	for _, s := range sharetest.Scenarios {
		n := s.Network(1)
		for name, offered := range map[string][][]unit.Rate{"controlled": s.Controlled(), "random": s.Random(1)} {
			qos, total := map[string]float64{}, map[string]float64{}
			qos["ideal"], total["ideal"] = sharetest.Mean(n, sharetest.Ideal(n, offered, sharetest.IntervalCycles))
			for _, m := range sharetest.Methods {
				qos[m.Name], total[m.Name] = sharetest.Mean(n, sharetest.Run(m, n, sharetest.Bottleneck, offered, sharetest.IntervalCycles))
			}
			adaptive, queues, static, hybrid := sharetest.AQoS.Name, sharetest.DiffServ.Name, sharetest.StaticMeters.Name, sharetest.Hybrid.Name
			for m := range qos {
				t.Logf("%d %%, %s, %s: QoS %+.2f %% over queues, total %+.2f %%", s.Unreserved, name, m, 100*(qos[m]/qos[queues]-1), 100*(total[m]/total[queues]-1))
			}
			if qos["ideal"] < qos[adaptive] || qos[adaptive] <= qos[queues] || qos[queues] <= qos[hybrid] || qos[hybrid] != qos[static] {
				t.Errorf("%d %%, %s: QoS %v", s.Unreserved, name, qos)
			}
			if total["ideal"] < total[adaptive] || total[queues] <= total[adaptive] || total[queues] <= total[static] || total[hybrid] < total[static] {
				t.Errorf("%d %%, %s: total %v", s.Unreserved, name, total)
			}
		}
	}
}

// TestScenarioSums: the reservations have the sums of table 5.1, and all rates are in the ranges
// of the tables.
func TestScenarioSums(t *testing.T) {
	table51 := [][3]unit.Rate{{1900, 2100, 1000}, {1700, 1800, 1500}, {1450, 1550, 2000}, {1300, 1200, 2500}}
	for k, s := range sharetest.Scenarios {
		queues := share.QueuesFor(s.Network(1), sharetest.Bottleneck, sharetest.DiffServ.Classes...)
		for q, want := range table51[k] {
			if queues[q].Minimum != want*unit.Kbit {
				t.Errorf("%d %%: queue %d has %v, want %v", s.Unreserved, q+1, queues[q].Minimum, want*unit.Kbit)
			}
		}
		for i, f := range s.Flows {
			if len(f.Waveform) != 10 {
				t.Errorf("%d %% %s has %d intervals", s.Unreserved, f.Name, len(f.Waveform))
			}
			for _, intervals := range [][][]unit.Rate{s.Controlled(), s.Random(1)} {
				for _, rates := range intervals {
					if rates[i] < f.Min || rates[i] > f.Max {
						t.Errorf("%d %% %s: %v is not in %v to %v", s.Unreserved, f.Name, rates[i], f.Min, f.Max)
					}
				}
			}
		}
	}
}

// TestScenarioScale: the scenarios are the same at links of 100 Mbit/s, in proportion.
func TestScenarioScale(t *testing.T) {
	const factor = 20
	for _, s := range sharetest.Scenarios {
		for _, m := range sharetest.Methods {
			n := s.Network(factor)
			if got := n.Capacities[sharetest.Bottleneck]; got != 100*unit.Mbit {
				t.Fatalf("the bottleneck has %v", got)
			}
			qos, total := sharetest.Mean(n, sharetest.Run(m, n, sharetest.Bottleneck, s.At(factor).Controlled(), sharetest.IntervalCycles))
			n = s.Network(1)
			wantQoS, wantTotal := sharetest.Mean(n, sharetest.Run(m, n, sharetest.Bottleneck, s.Controlled(), sharetest.IntervalCycles))
			if math.Abs(qos/factor/wantQoS-1) > 1e-5 || math.Abs(total/factor/wantTotal-1) > 1e-5 {
				t.Errorf("%d %%, %s: QoS %.0f and total %.0f, want %d times %.0f and %.0f", s.Unreserved, m.Name, qos, total, factor, wantQoS, wantTotal)
			}
		}
	}
}

// TestFalseSeizures: the algorithm takes noise for a trend (CALC-WINDOW is 0), and with 5 % of noise
// it seizes and hands back in about every third cycle. Meters that never change do not.
func TestFalseSeizures(t *testing.T) {
	s := sharetest.Scenarios[2]
	n := s.Network(1)
	constant := s.Controlled()[:1]
	for _, c := range []struct {
		method    sharetest.Method
		deviation float64
		low, high float64 // per flow and hour
	}{
		{sharetest.AQoS, 0, 0, 0},
		{sharetest.AQoS, 0.05, 300, 1800},
		{sharetest.StaticMeters, 0.05, 0, 0},
	} {
		run := sharetest.Run(c.method, n, sharetest.Bottleneck, sharetest.Noisy(constant, 3600, c.deviation, 1), 1)
		if got := float64(sharetest.FalseSeizures(n, run)) / 4; got < c.low || got > c.high {
			t.Errorf("%s with %.0f %% of noise: %.0f false seizures a flow and hour, want %.0f to %.0f", c.method.Name, 100*c.deviation, got, c.low, c.high)
		} else {
			t.Logf("%s with %.0f %% of noise: %.0f false seizures a flow and hour", c.method.Name, 100*c.deviation, got)
		}
	}
}
