package stripe

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// On paths of many kinds the number of streams comes close to the best fixed one soon, and then stays.
func TestTuner(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   int
		goodput func(n int) float64
		most    int // streams that it may settle with
	}{
		{"one stream fills the path", 4, func(int) float64 { return 100 }, 4},
		{"each stream has a tenth", 4, func(n int) float64 { return min(100, 10*float64(n)) }, 12},
		{"1 % of loss, CUBIC, as in the thesis", 4, func(n int) float64 { return min(874, 8.8*float64(n)) }, 128},
		{"over-use, as in the thesis", 100, func(n int) float64 { return min(597, 597-85*float64(n-5)/95, 200*float64(n)) }, 8},
		{"a long path", 1, func(n int) float64 { return min(900, 300*float64(n)) }, 4},
	} {
		for _, noise := range []float64{0, 0.01} {
			t.Run(fmt.Sprint(c.name, ", noise ", noise), func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				best := 0.0
				for n := 1; n <= 256; n++ {
					best = max(best, c.goodput(n))
				}
				u := NewTuner(1, 256, c.first)
				const epochs, settle = 300, 25
				sum, tried := 0.0, 0
				for n := range epochs {
					before := u.Streams()
					u.Observe(Measured{c.goodput(before) * (1 + noise*(2*random.Float64()-1)), true, false})
					if n >= settle {
						sum += c.goodput(before) / best
						if u.Streams() != before {
							tried++
						}
					}
				}
				if got := sum / (epochs - settle); got < 0.97 {
					t.Errorf("%.3f of the best", got)
				}
				if tried > 60 {
					t.Errorf("the number changed %d times in %d epochs", tried, epochs-settle)
				}
				if u.phase == holding && u.Streams() > c.most {
					t.Errorf("%d streams, want %d at most", u.Streams(), c.most)
				}
			})
		}
	}
}

// An epoch without enough to send changes nothing, and a path that gets slower or faster is tried again soon.
func TestTunerFollows(t *testing.T) {
	rate := 100.0
	goodput := func(n int) float64 { return min(rate, 10*float64(n)) }
	u := NewTuner(1, 64, 4)
	for range 60 {
		u.Observe(Measured{goodput(u.Streams()), true, false})
	}
	before := u.Streams()
	u.Observe(Measured{1, false, false})
	if u.Streams() != before {
		t.Error("an idle epoch changed the number")
	}
	rate = 400
	for range 20 {
		u.Observe(Measured{goodput(u.Streams()), true, false})
	}
	if got := goodput(u.Streams()); got < 100 {
		t.Errorf("on a faster path %d streams deliver %.0f", u.Streams(), got)
	}
}

// On a full path no more streams are tried, and fewer only of many.
func TestTunerFull(t *testing.T) {
	full := Measured{Goodput: 100, Busy: true, Full: true}
	u := NewTuner(1, 64, few)
	for range 3 * maxHold {
		u.Observe(full)
		if u.Streams() != few {
			t.Fatalf("%d streams on a full path, want those of the beginning, %d", u.Streams(), few)
		}
	}
	many := NewTuner(1, 64, 64)
	for range 100 {
		many.Observe(full)
	}
	if n := many.Streams(); n > few {
		t.Errorf("%d streams are left of 64 on a full path", n)
	}
	// It is full no longer.
	for range maxHold {
		u.Observe(Measured{Goodput: 10 * float64(u.Streams()), Busy: true})
	}
	if u.Streams() <= few {
		t.Errorf("%d streams though more would deliver more", u.Streams())
	}
}

// A satellite path of 600 ms is tried 2.4 s after it has become busy, and its trials take 12 s each. On a short path both
// take 2 s.
func TestEpochs(t *testing.T) {
	for _, c := range []struct{ rtt, first, other time.Duration }{
		{600 * time.Millisecond, 2400 * time.Millisecond, 12 * time.Second},
		{20 * time.Millisecond, 2 * time.Second, 2 * time.Second},
	} {
		if first, other := FirstEpoch(c.rtt), Epoch(c.rtt); first != c.first || other != c.other {
			t.Errorf("%v: %v and %v, want %v and %v", c.rtt, first, other, c.first, c.other)
		}
	}
}
