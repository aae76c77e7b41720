package reservations

import (
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// Claims have rows, and each topology is valid.
func TestBench(t *testing.T) {
	if _, err := Bench(bench.NewDraw(1)).Declared(nil); err != nil {
		t.Error(err)
	}
	designs := []design{thesis(5 * unit.Mbit), dumbbell(50*unit.Mbit, 3), diamond()}
	for _, w := range wakings {
		designs = append(designs, w.network())
	}
	for _, d := range designs {
		for _, routers := range []bool{false, true} {
			if d.routers = routers; routers {
				d.three = false
			}
			if err := d.topology().Validate(); err != nil {
				t.Errorf("%+v: %v", d, err)
			}
		}
	}
}

// A limit that falls and returns within three cycles is a false seizure; a loan that ends is none.
func TestSeizures(t *testing.T) {
	began := time.Now()
	series := func(limits ...float64) (all []limited) {
		for i, l := range limits {
			all = append(all, limited{began.Add(time.Duration(i) * time.Second), l})
		}
		return turns(all)
	}
	for _, c := range []struct {
		limits       []float64
		all, falsely int
	}{
		{[]float64{10, 10, 10}, 0, 0}, {[]float64{20, 10, 20}, 0, 0}, {[]float64{10, 5, 5, 5, 5, 10}, 1, 0}, {[]float64{10, 5, 10}, 1, 1}, {[]float64{10, 5, 7, 7}, 1, 0},
	} {
		if all, falsely := seizures(series(c.limits...), began, began.Add(time.Hour), 10); all != c.all || falsely != c.falsely {
			t.Errorf("%v: %d seizures, %d of them false", c.limits, all, falsely)
		}
	}
	limits := series(3, 9, 4)
	if most, ok := highest(limits, began.Add(1500*time.Millisecond), began.Add(3*time.Second)); !ok || most != 9 {
		t.Errorf("the highest is %v, %v", most, ok)
	}
	if _, ok := highest(limits, began.Add(-2*time.Second), began.Add(-time.Second)); ok {
		t.Error("there was no limit before the first")
	}
}

// The offline optimum is at least what any oracle accepts in order, and no oracle accepts more than is asked for.
func TestOracles(t *testing.T) {
	for n := range uint64(20) {
		rnd := rand.New(rand.NewPCG(7, n))
		top, err := drawn(rnd, 5, 6)
		if err != nil {
			t.Fatal(err)
		}
		all, asked := requests(rnd, 5, 9, 900), 0.0
		for _, a := range all {
			asked += a.worth()
		}
		best := offline(top, all)
		ours, err := admitted(top, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []float64{ours, online(top, all, orders[0]), online(top, all, orders[1]), online(top, all, orders[2])} {
			if got > best*(1+1e-9) || best > asked*(1+1e-9) {
				t.Errorf("network %d: %g accepted, the optimum is %g of %g", n, got, best, asked)
			}
		}
	}
}
