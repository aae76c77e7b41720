package link

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

// bytesIn returns the layer-2 bytes that were delivered in (from, to].
func bytesIn(results []Result, from, to int64) (n float64) {
	for _, r := range own(results, Delivered) {
		if r.Released > from && r.Released <= to {
			n += float64(r.Size)
		}
	}
	return n
}

// A token bucket conforms to its definition: in no window does it pass more than size + rate * window
// (nor more than peak * window and a frame), and a backlogged sender gets all of it.
func TestBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bucket{
			Rate: unit.Rate(rapid.Uint64Range(1e6, 100e6).Draw(t, "rate")),
			Size: unit.Bytes(rapid.Uint64Range(1600, 200_000).Draw(t, "size")),
		}
		if rapid.Bool().Draw(t, "peaked") {
			b.Peak = b.Rate * 4
		}
		got := play(New(Spec{Bucket: &b, Queue: Amount{Segments: 1 << 20}}, 1, 0), greedy(4000, second, second), 400*ms)
		var ends []int64
		for _, r := range got {
			ends = append(ends, r.Released)
		}
		for _, i := range []int{0, len(ends) / 3, len(ends) / 2} {
			for j := i; j < len(ends); j += 7 {
				window := float64(ends[j]-ends[i]) / 1e9
				sum := float64((j - i + 1) * FullFrame)
				if limit := float64(b.Size) + float64(b.Rate)/8*window + 1; sum > limit {
					t.Fatalf("%.0f bytes in %.6f s, at most %.0f", sum, window, limit)
				}
				if limit := float64(b.Peak)/8*window + FullFrame + 1; b.Peak > 0 && sum > limit {
					t.Fatalf("%.0f bytes in %.6f s, the peak allows %.0f", sum, window, limit)
				}
			}
		}
		all := float64(b.Size) + float64(b.Rate)/8*0.4
		if n := bytesIn(got, -1, 400*ms); n < min(all-FullFrame, 4000*FullFrame) && b.Peak == 0 {
			t.Fatalf("a greedy sender got %.0f of %.0f bytes", n, all)
		}
	})
}

// The two phases of section 4.2.2: the peak rate until the bucket is empty, at b/(P-R) seconds, then
// the token rate.
func TestPeakThenRate(t *testing.T) {
	b := Bucket{Rate: 65 * unit.Mbit, Size: 5_000_000, Peak: unit.Gbit}
	got := play(New(Spec{Bucket: &b, Queue: Amount{Segments: 1 << 20}}, 1, 0), greedy(20_000, second, second), 2*second)
	empty := 42_780 * us // 8b/(P-R)
	check := func(name string, from, to int64, want float64) {
		rate := bytesIn(got, from, to) * 8 / float64(to-from) * 1e9
		if math.Abs(rate-want) > want*0.005 {
			t.Errorf("%s: %.1f Mbit/s, want %.1f", name, rate/1e6, want/1e6)
		}
	}
	check("peak", 0, empty*95/100, 1e9)
	check("token rate", empty+ms, 2*second, 65e6)
}

// Section 4.5.1: the rate falls slowly from 1 Gbit/s to 600 Mbit/s, then at once to 65 Mbit/s. With a
// peak that falls with the fill level, F' = -(low + (peak-low) F/b - R)/8 has the solution F(t) = (b +
// b0) exp(-kt) - b0, with k = (peak-low)/8b and b0 = b (low-R)/(peak-low).
func TestDecay(t *testing.T) {
	const size, peak, low, rate = 5e6, 1e9, 600e6, 65e6
	b := Bucket{Rate: rate, Size: size, Peak: peak, PeakLow: low}
	got := play(New(Spec{Bucket: &b, Queue: Amount{Segments: 1 << 20}}, 1, 0), greedy(20_000, second, second), second)
	k, b0 := (peak-low)/8/size, size*(low-rate)/(peak-low)
	empty := math.Log((size+b0)/b0) / k
	for _, part := range []float64{0.1, 0.3, 0.5, 0.8, 0.99} {
		at := part * empty
		left := (size+b0)*math.Exp(-k*at) - b0
		want := size - left + rate/8*at
		if n := bytesIn(got, -1, int64(at*1e9)); math.Abs(n-want) > 0.01*want {
			t.Errorf("after %.1f ms %.0f bytes, want %.0f", at*1e3, n, want)
		}
	}
	from, to := int64(empty*1e9)+2*ms, second
	if r := bytesIn(got, from, to) * 8e9 / float64(to-from); math.Abs(r-rate) > 0.01*rate {
		t.Errorf("%.1f Mbit/s when the bucket is empty", r/1e6)
	}
}

// Section 4.5.2: every 20 s there are additional tokens, which are spent at the peak rate.
func TestGift(t *testing.T) {
	b := Bucket{Rate: 5 * unit.Mbit, Size: 10_000, Peak: 32 * unit.Mbit, Gift: 500_000, GiftEvery: 20 * time.Second}
	in := greedy(1, 300*us, 41*second) // 40 Mbit/s
	got := play(New(Spec{Bucket: &b, Queue: Amount{Segments: 50}}, 1, 0), in, 41*second)
	for _, c := range []struct {
		from, to int64
		want     float64
	}{
		{1, 20, 5e6}, {21, 40, 5e6}, {40, 41, 5e6 + 500_000*8},
	} {
		rate := bytesIn(got, c.from*second, c.to*second) * 8 / float64(c.to-c.from)
		if math.Abs(rate-c.want) > 0.01*c.want {
			t.Errorf("from %d to %d s: %.3f Mbit/s, want %.3f", c.from, c.to, rate/1e6, c.want/1e6)
		}
	}
}

// A policer passes size + rate * time of the arrivals, and delays nothing.
func TestPolice(t *testing.T) {
	b := Bucket{Rate: 10 * unit.Mbit, Size: 20_000, Police: true}
	got := play(New(Spec{Rate: unit.Gbit, Bucket: &b}, 1, 0), greedy(1, 100*us, 10*second), 11*second)
	want := 20_000 + 10e6/8*10.0
	if n := bytesIn(got, -1, 11*second); math.Abs(n-want) > 2*FullFrame {
		t.Errorf("%.0f bytes passed, want %.0f", n, want)
	}
	for _, r := range own(got, Delivered) {
		if r.Released-r.Arrived > 13*us {
			t.Fatalf("a segment waited %d ns", r.Released-r.Arrived)
		}
	}
	if n := len(own(got, Policed)) + len(own(got, Delivered)); n != 100_000 {
		t.Errorf("%d of 100000 have a fate", n)
	}
}

// Table 4.3, M1: T = 15 ms and 6.5 packets of 1,500 bytes give 6 and 7 packets alternately, at the
// beginning of each interval only.
func TestXen(t *testing.T) {
	x := Xen{Interval: 15 * time.Millisecond, Tokens: 6.5 * FullFrame}
	got := play(New(Spec{Rate: unit.Gbit, Xen: &x, Queue: Amount{Segments: 1 << 20}}, 1, 0), greedy(5000, second, second), 3*second)
	counts := map[int64]int{}
	for _, r := range got {
		interval, phase := r.Released/(15*ms), r.Released%(15*ms)
		counts[interval]++
		if phase > 100*us {
			t.Fatalf("a segment %d us into its interval", phase/us)
		}
	}
	for i := int64(0); i < 199; i++ {
		if n, want := counts[i], int(6+i%2); n != want {
			t.Fatalf("interval %d has %d segments, want %d", i, n, want)
		}
	}
}

// Idle intervals save one frame at most.
func TestXenSavesLittle(t *testing.T) {
	x := Xen{Interval: 15 * time.Millisecond, Tokens: 4 * LargestFrame}
	l := New(Spec{Rate: unit.Gbit, Xen: &x}, 1, 0)
	var in []arrival
	for range 9 {
		in = append(in, arrival{second, Packet{Size: LargestFrame}})
	}
	got := play(l, in, 2*second)
	first := 0
	for _, r := range got {
		if r.Released < second+ms {
			first++
		}
	}
	if len(got) != 9 || first != 5 {
		t.Errorf("%d at once and %d in all, want 5 and 9", first, len(got))
	}
}
