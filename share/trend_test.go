package share

import (
	"math"
	"math/rand/v2"
	"testing"

	"headgate.dev/headgate/unit"
)

// TestNoise counts what noise alone does in ten hours to constant flows with 0, 5 and 10 % of Gaussian
// measurement noise, at several parts of their reservations, on a link that others fill.
func TestNoise(t *testing.T) {
	const flows, hours = 20, 10
	for _, sd := range []float64{0, 0.01, 0.05, 0.10} {
		rnd := rand.New(rand.NewPCG(29, uint64(1000*sd)))
		a := NewAdaptive(DefaultQuantum)
		var list []ReservedFlow
		var rates []float64
		for i := range flows {
			list = append(list, ReservedFlow{Reserved: 10 * unit.Mbit, Class: 1 + i%4})
			rates = append(rates, float64(10*unit.Mbit)*(0.5+0.04*float64(i)))
		}
		list = append(list, ReservedFlow{})
		limits := a.SetNetwork(oneLink(2*flows*10*unit.Mbit, list...))
		offered := make([]unit.Rate, flows+1)
		offered[flows] = unit.Gbit
		messages := 0
		var margin, lost float64
		seen := newSeizures(limits)
		for range hours * 3600 {
			for i, r := range rates {
				offered[i] = unit.Rate(max(0, r*(1+sd*rnd.NormFloat64())))
				lost += max(0, 1-float64(limits[i])/r)
				margin += float64(limits[i])/r - 1
			}
			limits = a.Cycle(offered)
			seen.count(limits[:flows])
			messages += len(a.Changed())
		}
		total, claims := 0, 0
		for i := range flows {
			claims += a.FalseSeizures(i)
			total += seen.n[i]
			if rate := float64(seen.n[i]) / hours; rate > 1 {
				t.Errorf("noise %g: flow at %.0f%% of its reservation has %.1f false seizures an hour", sd, rates[i]/1e5, rate)
			}
		}
		t.Logf("noise %g: %.3f false seizures (%.3f of claims) and %.1f messages a flow and hour, margin %.1f%%, limits cost %.3f%% of the rate",
			sd, float64(total)/flows/hours, float64(claims)/flows/hours, float64(messages)/flows/hours, 100*margin/flows/hours/3600, 100*lost/flows/hours/3600)
	}
}

// seizures counts false seizures from limits alone, by the definition of the requirement: a limit
// that falls by more than 1 %, and rises by more than half of that within three cycles.
type seizures struct {
	last, from, to []unit.Rate
	age, n         []int
}

func newSeizures(limits []unit.Rate) *seizures {
	n := len(limits)
	return &seizures{last: append([]unit.Rate(nil), limits...), from: make([]unit.Rate, n), to: make([]unit.Rate, n), age: make([]int, n), n: make([]int, n)}
}

func (s *seizures) count(limits []unit.Rate) {
	for i, now := range limits {
		s.age[i]++
		if s.from[i] > 0 && s.age[i] <= 3 && now > s.to[i]+(s.from[i]-s.to[i])/2 {
			s.n[i]++
			s.from[i] = 0
		}
		if now < s.last[i]-s.last[i]/100 {
			s.from[i], s.to[i], s.age[i] = s.last[i], now, 0
		}
		s.last[i] = now
	}
}

// within counts limits that change within a cycle.
func (s *seizures) within(limits []unit.Rate) {
	for i := range limits {
		s.age[i]--
	}
	s.count(limits)
}

// TestFall: a real fall of 20 % is seen within three cycles: always without
// noise, in 98 % of cases at 5 % of noise, and in five of six at 10 %.
func TestFall(t *testing.T) {
	for _, c := range []struct{ sd, seen float64 }{{0, 1}, {0.01, 1}, {0.05, 0.99}, {0.10, 0.83}} {
		rnd := rand.New(rand.NewPCG(7, uint64(1000*c.sd)))
		const trials = 2000
		var within [11]int
		for range trials {
			a := NewAdaptive(DefaultQuantum)
			limits := a.SetNetwork(oneLink(10*unit.Mbit, ReservedFlow{Reserved: 8 * unit.Mbit, Class: 1}, ReservedFlow{}))
			step := func(rate float64) unit.Rate {
				limits = a.Cycle([]unit.Rate{unit.Rate(rate * math.Max(0, 1+c.sd*rnd.NormFloat64())), 20 * unit.Mbit})
				return limits[0]
			}
			for range 100 + rnd.IntN(64) {
				step(6e6)
			}
			before := limits[0]
			for cycle := 1; cycle <= 10; cycle++ {
				if step(4.8e6); float64(limits[0]) < 0.97*float64(before) {
					within[cycle]++
					break
				}
			}
		}
		three := float64(within[1]+within[2]+within[3]) / trials
		t.Logf("noise %g: seen after 1 to 10 cycles: %v", c.sd, within[1:])
		if three < c.seen {
			t.Errorf("noise %g: %.1f%% of falls are seen within three cycles", c.sd, 100*three)
		}
	}
}

// A step within a cycle is seen at its end as what it is: up, down, and a rate that has not moved towards the end, which is noise. A flow that is
// silent at the end may only pause.
func TestObserveStep(t *testing.T) {
	for _, c := range []struct{ rate, end, want float64 }{
		{1.5, 2, 2}, {0.75, 0.5, 0.5}, // in the middle of the cycle
		{1.1, 2, 1.1},              // end was reached after the last part began, or is noise
		{1.5, 1.4, 1.5},            // it has turned
		{0.5, 0, 0.5}, {1, 2, 1.0}, // silent, and steady
	} {
		var of trend
		for range 20 {
			of.observe(1)
		}
		of.observeStep(c.rate, c.end)
		if of.level != c.want {
			t.Errorf("%g, and %g at the end: the level is %g, want %g", c.rate, c.end, of.level, c.want)
		}
	}
}

// Steps of a few per cent do not become noise after a beginning that looked noisy, and noise that has ended is soon forgotten.
func TestNoiseOfSteps(t *testing.T) {
	var of trend
	rnd := rand.New(rand.NewPCG(1, 1))
	at := func(level, sd float64) { of.observe(level * (1 + sd*rnd.NormFloat64())) }
	for _, first := range []float64{0.8, 1.1, 0.9} {
		at(first, 0)
	}
	for n := range 400 {
		at([]float64{1, 1.06}[n/10%2], 0.003)
		if noise := of.noise(); n > 30 && noise > 0.013 {
			t.Fatalf("after %d samples with 0.3 %% of noise and steps of 6 %% the noise is %.2g", n, noise)
		}
	}
	for range 100 {
		at(1, 0.05)
	}
	if noise := of.noise(); noise < 0.035 {
		t.Errorf("noise of 5 %% is seen as %.2g", noise)
	}
	for range 30 {
		at(1, 0.003)
	}
	if noise := of.noise(); noise > 0.01 {
		t.Errorf("30 samples after its end, noise of 5 %% is seen as %.2g", noise)
	}
}

// The first sample of a flow that begins within a cycle is of a part of it: the next one is the level, and no noise.
func TestBeginsWithinACycle(t *testing.T) {
	for _, c := range []struct {
		first, want float64
		change      change
	}{{0.3, 1, began}, {0.99, 0.995, steady}} {
		var of trend
		of.observe(c.first)
		if got := of.observe(1); got != c.change || of.level != c.want || of.noise() > warmUpNoise {
			t.Errorf("%g and 1: %v, level %g, noise %g, want %v and level %g", c.first, got, of.level, of.noise(), c.change, c.want)
		}
	}
}

// Counters are read at other moments than those at which senders change their rates, so that successive rates share a part of their noise. Constant flows have no
// more false seizures for that, and a fall of 20 % is seen as before.
func TestCorrelatedNoise(t *testing.T) {
	const trials, flows = 30, 20
	for _, c := range []struct{ sd, seen float64 }{{0.05, 0.96}, {0.10, 0.70}} {
		seized, seen := 0, 0
		for trial := range uint64(trials) {
			rnd := rand.New(rand.NewPCG(trial, uint64(1000*c.sd)))
			a := NewAdaptive(DefaultQuantum)
			var list []ReservedFlow
			var apart, last [flows]float64
			for i := range flows {
				list = append(list, ReservedFlow{Reserved: unit.Mbit, Class: 1 + i%4, Unresponsive: true})
				apart[i], last[i] = rnd.Float64(), 1
			}
			limits := a.SetNetwork(oneLink(40*unit.Mbit, append(list, ReservedFlow{})...))
			falsely := newSeizures(limits)
			cycle := func(level float64) {
				offered := make([]unit.Rate, flows+1)
				offered[flows] = 50 * unit.Mbit
				for i := range flows {
					next := level * (1 + c.sd*rnd.NormFloat64())
					offered[i] = unit.Rate(1e6 * (apart[i]*last[i] + (1-apart[i])*next))
					last[i] = next
				}
				limits = a.Cycle(offered)
			}
			for range 600 {
				cycle(0.9)
				falsely.count(limits[:flows])
			}
			for i := range flows {
				seized += falsely.n[i]
			}
			before, fell := limits, [flows]bool{}
			for range 3 {
				cycle(0.72)
				for i := range flows {
					fell[i] = fell[i] || float64(limits[i]) < 0.9*min(float64(before[i]), 1e6)
				}
			}
			for _, yes := range fell {
				if yes {
					seen++
				}
			}
		}
		hours, all := float64(trials*flows)/6, float64(trials*flows)
		t.Logf("noise %g: %.2f false seizures a flow and hour, %.1f %% of falls seen within three cycles", c.sd, float64(seized)/hours, 100*float64(seen)/all)
		if float64(seized)/hours > 1 || float64(seen)/all < c.seen {
			t.Errorf("noise %g: %.2f false seizures a flow and hour, %.1f %% of falls seen", c.sd, float64(seized)/hours, 100*float64(seen)/all)
		}
	}
}
