package path

import (
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/unit"
)

// train returns a train of 200 full packets at 100 Mbit/s that arrived with a delay each.
func train(delay func(i int) (ns int64, arrived bool)) *probe.Sample {
	const n, rate = 200, 100 * unit.Mbit
	s := &probe.Sample{Train: probe.Uniform(purposePass, n, fullPacket, rate)}
	gap := int64(s.Parts[0].Gap())
	for i := range n {
		s.Sent = append(s.Sent, int64(i)*gap)
		if d, ok := delay(i); ok {
			s.Arrived = append(s.Arrived, probe.Arrival{Number: i, At: int64(i)*gap + d})
		}
	}
	return s
}

// TestPassed: a train shows how much is available by how little its delays grow.
func TestPassed(t *testing.T) {
	const gap = 121_120
	for name, c := range map[string]struct {
		delay       func(i int) (int64, bool)
		least, most float64
	}{
		"no queue":                  {func(int) (int64, bool) { return 5e6, true }, 99e6, 100e6},
		"others' packets":           {func(i int) (int64, bool) { return 5e6 + int64(i%7)*10_000, true }, 95e6, 100e6},
		"a queue grows by 2 %":      {func(i int) (int64, bool) { return 5e6 + int64(i)*gap/50, true }, 85e6, 93e6},
		"a queue grows by half":     {func(i int) (int64, bool) { return 5e6 + int64(i)*gap/2, true }, 0, 0},
		"all arrive at one time":    {func(i int) (int64, bool) { return int64(200-i) * gap, true }, 0, 0},
		"a third is lost":           {func(i int) (int64, bool) { return 5e6, i%3 != 0 }, 0, 0},
		"hardly any packet is lost": {func(i int) (int64, bool) { return 5e6, i != 50 }, 96e6, 99e6},
	} {
		r := Method{Parts: AllParts}.read(nil)
		if got, _ := r.passed(train(c.delay), nil); got < c.least || got > c.most {
			t.Errorf("%s: %.4g, want %.4g to %.4g", name, got, c.least, c.most)
		}
	}
}

// TestLasting: the rate of a train that meets the end of a bucket in its last fifth is that of what passed at once, for the bytes that passed before.
func TestLasting(t *testing.T) {
	const gap = 121_120
	slows := func(from int) *probe.Sample {
		return train(func(i int) (int64, bool) { return int64(max(i-from, 0)) * gap, true }) // at half of the rate from there on
	}
	for from, want := range map[int]float64{200: 100e6, 160: 50e6, 100: 50e6, 0: 50e6} {
		rate, held := lasting(slows(from), 0)
		if rate < want*0.98 || rate > want*1.02 || held != 160*1514 {
			t.Errorf("slower from packet %d on: %.4g for %v, want %.4g", from, rate, held, want)
		}
	}
	if rate, held := lasting(&probe.Sample{}, 0); rate != 0 || held != 0 {
		t.Errorf("no train: %v for %v", rate, held)
	}
}

// TestContradict: a limiter type that trains contradict has the confidence that such answers had on drawn paths, and no parameters.
func TestContradict(t *testing.T) {
	for _, c := range []struct {
		class     limiter.Class
		said      float64
		unlimited bool
		want      float64
	}{{limiter.Policer, 0.99, false, shownLater}, {limiter.Policer, 0.8, false, hidden}, {limiter.TBF, 0.99, false, shownLater}, {limiter.TBF, 0.99, true, hardlyLimited}} {
		l := limiter.Result{Class: c.class, Confidence: 0.8, Bucket: &limiter.Bucket{}}
		contradict(&l, c.said, "why", c.unlimited)
		if l.Confidence != c.want || l.Bucket != nil || len(l.Doubts) != 1 || (Answer{Limiter: &l}).HasBucket() {
			t.Errorf("%+v: %+v", c, l)
		}
	}
}

// TestSmallBudget: what is kept for the last trains leaves most of a small budget to the first ones.
func TestSmallBudget(t *testing.T) {
	for _, budget := range []unit.Bytes{200_000, 500_000, 1_000_000, 2_000_000} {
		for _, parts := range []Parts{AllParts, {Available: true}} {
			m := Method{Parts: parts, Budget: budget}
			if r := m.read(nil); r.left < budget*9/10 {
				t.Errorf("%v of %v are left", r.left, budget)
			}
			if _, ok := m.Next(nil); !ok {
				t.Errorf("%+v with %v sends nothing", parts, budget)
			}
		}
	}
}
