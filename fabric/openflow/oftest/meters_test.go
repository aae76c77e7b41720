package oftest

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	of "headgate.dev/headgate/fabric/openflow"
)

// A meter passes exactly what a bucket in rational numbers passes.
func TestMeterExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			s := New(Options{})
			flags := rapid.SampledFrom([]of.MeterFlags{of.MeterKbps, of.MeterPktps}).Draw(t, "unit")
			rate, burst := rapid.Uint32Range(1, 1e6).Draw(t, "rate"), rapid.Uint32Range(1, 1000).Draw(t, "burst")
			if err := s.Do(meterMod(of.MeterAdd, flags|of.MeterBurst, 1, drop(rate, burst))); err != nil {
				t.Fatal(err)
			}
			unit := int64(1) // of the burst, in bits or packets
			if flags == of.MeterKbps {
				unit = 1000
			}
			size := big.NewRat(int64(burst)*unit, 1)
			level, last := new(big.Rat).Set(size), time.Now()
			passed, dropped := uint64(0), uint64(0)
			for range rapid.IntRange(1, 40).Draw(t, "packets") {
				time.Sleep(time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "gap")))
				bytes := rapid.IntRange(60, 1514).Draw(t, "bytes")
				level.Add(level, new(big.Rat).Mul(big.NewRat(int64(rate)*unit, 1e9), big.NewRat(int64(time.Since(last)), 1)))
				last = time.Now()
				if level.Cmp(size) > 0 {
					level.Set(size)
				}
				cost := big.NewRat(1, 1)
				if flags == of.MeterKbps {
					cost = big.NewRat(int64(bytes)*8, 1)
				}
				want := level.Cmp(cost) >= 0
				if want {
					level.Sub(level, cost)
					passed++
				} else {
					dropped++
				}
				if got := s.meters[1].pass(bytes); got != want {
					t.Fatalf("a packet of %d bytes passes: %v, want %v", bytes, got, want)
				}
			}
			if m := s.Meters()[0]; m.Packets != passed+dropped || m.Bands[0].Packets != dropped {
				t.Fatalf("%d packets of which %d were dropped: %+v", passed+dropped, dropped, m)
			}
		})
	})
}

// Of two bands the one with the highest rate that is exceeded drops.
func TestBands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		if err := s.Do(meterMod(of.MeterAdd, of.MeterPktps|of.MeterBurst, 1, drop(10, 2), drop(1000, 4))); err != nil {
			t.Fatal(err)
		}
		passed := 0
		for range 6 {
			if s.meters[1].pass(100) {
				passed++
			}
		}
		m := s.Meters()[0]
		if passed != 2 || m.Bands[0].Packets != 2 || m.Bands[1].Packets != 2 {
			t.Errorf("%d passed, bands %+v, want 2 passed and 2 dropped by each", passed, m.Bands)
		}
	})
}

// The largest rates and bursts do not overflow, after any time.
func TestLargestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		if err := s.Do(meterMod(of.MeterAdd, of.MeterKbps|of.MeterBurst, 1, drop(1<<32-1, 1<<32-1))); err != nil {
			t.Fatal(err)
		}
		for _, d := range []time.Duration{0, 1, time.Second, 1000 * time.Hour, 100_000 * time.Hour} {
			time.Sleep(d)
			m := s.meters[1]
			m.fill()
			if b := m.bands[0]; b.tokens != b.size() {
				t.Errorf("after %v: %d tokens of %d", d, b.tokens, b.size())
			}
		}
	})
}
