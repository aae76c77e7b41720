package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// A seed always gives the same values, so that figures in reports can be reproduced.
func TestDrawRepeats(t *testing.T) {
	drawn := func(seed uint64, name string) string {
		d := NewDraw(seed).For(name)
		return fmt.Sprintf("%.6f %d %v %v %v %s", d.Uniform(0, 1), d.Int(1, 6), d.Rate(800*unit.Kbit, unit.Gbit),
			d.Duration(time.Millisecond, time.Second), d.Shares(3, 100_000), OneOf(d, "a", "b", "c"))
	}
	const want = "0.380812 2 4.81Mbit 283ms [41% 29% 30%] b"
	if got := drawn(42, "case"); got != want {
		t.Errorf("seed 42 gives %q, want %q", got, want)
	}
	if drawn(42, "case") == drawn(43, "case") || drawn(42, "case") == drawn(42, "another") {
		t.Error("the random values do not depend on the seed and the name")
	}
	// A case with more values does not change those of the next.
	d := NewDraw(42)
	d.For("first").Uniform(0, 1)
	if got, want := d.For("second").Int(0, 1e9), NewDraw(42).For("second").Int(0, 1e9); got != want {
		t.Errorf("after another case: %d, alone: %d", got, want)
	}
}

func TestDrawStaysInRange(t *testing.T) {
	d := NewDraw(NewSeed())
	t.Logf("seed %d", d.Seed())
	decades, faces := map[int]int{}, map[int]int{}
	const n = 4000
	for range n {
		r := d.Rate(unit.Mbit, unit.Gbit)
		if r < unit.Mbit || r > unit.Gbit {
			t.Fatalf("a rate of %v", r)
		}
		for i, top := range []unit.Rate{10 * unit.Mbit, 100 * unit.Mbit, unit.Gbit} {
			if r < top {
				decades[i]++
				break
			}
		}
		if v := d.Duration(time.Millisecond, 50*time.Millisecond); v < time.Millisecond || v > 50*time.Millisecond {
			t.Fatalf("a time of %v", v)
		}
		faces[d.Int(1, 6)]++
		shares := d.Shares(4, 10*unit.Whole/100)
		var sum unit.Share
		for _, s := range shares {
			sum += s
		}
		if sum != unit.Whole || slices.Min(shares) < 10*unit.Whole/100 {
			t.Fatalf("shares %v", shares)
		}
	}
	// Each has a third, or a sixth: within six standard deviations of 30 and 24.
	for i := range 3 {
		if decades[i] < n/3-180 || decades[i] > n/3+180 {
			t.Errorf("of %d rates %d are in decade %d", n, decades[i], i)
		}
	}
	for i := 1; i <= 6; i++ {
		if faces[i] < n/6-142 || faces[i] > n/6+142 {
			t.Errorf("of %d throws %d are %d", n, faces[i], i)
		}
	}
}

// The printed value is exact.
func TestDrawnRatesPrintExactly(t *testing.T) {
	d := NewDraw(7)
	for range 1000 {
		r := d.Rate(800*unit.Kbit, unit.Gbit)
		if len(r.String()) > len("1.23Mbit") {
			t.Fatalf("a rate of %v has more than three digits", r)
		}
	}
}
