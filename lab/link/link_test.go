package link

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

const (
	us     = int64(time.Microsecond)
	ms     = int64(time.Millisecond)
	second = int64(time.Second)
)

// arrival is a packet and its arrival time.
type arrival struct {
	at int64
	Packet
}

// play offers the arrivals, calls Take whenever Next says so, and returns all results in the order of
// Take.
func play(l *Link, arrivals []arrival, until int64) (out []Result) {
	drain := func(to int64) {
		for at, ok := l.Next(); ok && at <= to; at, ok = l.Next() {
			for r, ok := l.Take(at); ok; r, ok = l.Take(at) {
				out = append(out, r)
			}
		}
		for r, ok := l.Take(to); ok; r, ok = l.Take(to) {
			out = append(out, r)
		}
	}
	for _, a := range arrivals {
		drain(a.at)
		l.Offer(a.at, a.Packet)
	}
	drain(until)
	return out
}

// greedy keeps the queue full: n frames at once, and one at each later time.
func greedy(n int, every, until int64) (out []arrival) {
	for range n {
		out = append(out, arrival{0, Packet{Size: FullFrame}})
	}
	for at := every; at < until; at += every {
		out = append(out, arrival{at, Packet{Size: FullFrame}})
	}
	return out
}

func own(results []Result, fate Fate) (out []Result) {
	for _, r := range results {
		if r.Fate == fate && !r.Cross {
			out = append(out, r)
		}
	}
	return out
}

func drawArrivals(t *rapid.T, n int) (out []arrival) {
	at := int64(0)
	for range rapid.IntRange(1, n).Draw(t, "packets") {
		at += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 200*us)).Draw(t, "gap")
		out = append(out, arrival{at, Packet{
			Size: rapid.IntRange(60, LargestFrame).Draw(t, "size"),
			DSCP: uint8(rapid.SampledFrom([]int{0, 8, 46}).Draw(t, "dscp")), ECN: uint8(rapid.IntRange(0, 3).Draw(t, "ecn")),
		}})
	}
	return out
}

// departure = max(now, busy) + size/rate in exact arithmetic, for any number of back-to-back segments.
// At most a picosecond is lost for each.
func TestSerialiser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := unit.Rate(rapid.Uint64Range(500e3, 10e9).Draw(t, "rate"))
		delay := rapid.Int64Range(0, 600*ms).Draw(t, "delay")
		in := drawArrivals(t, 200)
		got := play(New(Spec{Rate: rate, Delay: time.Duration(delay), Queue: Amount{Bytes: 1 << 30}}, 1, 0), in, 100*second)
		if len(got) != len(in) {
			t.Fatalf("%d of %d came through", len(got), len(in))
		}
		busy := new(big.Rat)
		for i, a := range in {
			begins := new(big.Rat).SetInt64(a.at)
			if busy.Cmp(begins) > 0 {
				begins = busy
			}
			took := big.NewRat(int64(a.Size)*8e9, int64(rate))
			busy = new(big.Rat).Add(begins, took)
			want, _ := busy.Float64()
			if r := got[i]; math.Abs(float64(r.Departed)-want) > 1.5 || r.Released != r.Departed+delay || r.Size != a.Size {
				t.Fatalf("packet %d of %d bytes departed at %d and was released at %d, want %.1f and %.1f", i, a.Size, r.Departed, r.Released, want, want+float64(delay))
			}
		}
	})
}

// 10 Gbit/s for a second passes 825,627 full frames: there is no rounding error.
func TestNoDrift(t *testing.T) {
	l := New(Spec{Rate: 10 * unit.Gbit, Queue: Amount{Bytes: 2 << 30}}, 1, 0)
	for range 900_000 {
		l.Offer(0, Packet{Size: FullFrame})
	}
	n := 0
	for _, ok := l.Take(second); ok; _, ok = l.Take(second) {
		n++
	}
	// The last frame ends after the second.
	if want := 10_000_000_000 / (FullFrame * 8); n < want || n > want+1 {
		t.Errorf("%d frames in a second, want %d", n, want)
	}
}

// Droptail conforms to its definition: an arrival is dropped if and only if it and the queue together
// exceed the limit. The oracle keeps a list of the times at which each accepted packet begins.
func TestDroptail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := unit.Rate(rapid.Uint64Range(5e6, 500e6).Draw(t, "rate"))
		limit := rapid.SampledFrom([]Amount{{Bytes: 3000}, {Bytes: 20_000}, {Segments: 1}, {Segments: 7}, {Time: 2 * time.Millisecond}}).Draw(t, "limit")
		in := drawArrivals(t, 300)
		got := play(New(Spec{Rate: rate, Queue: limit}, 1, 0), in, 100*second)
		fates := make(map[uint64]Fate)
		for _, r := range got {
			fates[r.Number] = r.Fate
		}
		maxBytes := max(limit.bytes(rate), LargestFrame)
		type accepted struct {
			begins float64
			size   int
		}
		var all []accepted
		busy := 0.0
		for i, a := range in {
			bytes, segments := 0, 0
			for _, w := range all {
				if w.begins > float64(a.at)+1e-3 {
					bytes += w.size
					segments++
				}
			}
			full := segments > 0 && (limit.Segments > 0 && segments >= limit.Segments || limit.Segments == 0 && float64(bytes+a.Size) > maxBytes)
			// Truncated picoseconds could change the order of two events: such arrivals are not
			// checked.
			for _, w := range all {
				if d := math.Abs(w.begins - float64(a.at)); d > 0 && d < 2 {
					return
				}
			}
			if dropped := fates[uint64(i+1)] == Overflowed; dropped != full {
				t.Fatalf("packet %d at %d ns: dropped %v with %d bytes and %d segments waiting", i, a.at, dropped, bytes, segments)
			}
			if !full {
				begins := max(busy, float64(a.at))
				busy = begins + float64(a.Size)*8e9/float64(rate)
				all = append(all, accepted{begins, a.Size})
			}
		}
	})
}

// A program that calls Take only at the times of Next gets the same results as one that calls it at
// all times, on any link.
func TestNextIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		if p := s.Problems(); len(p) > 0 {
			t.Fatalf("%+v", p)
		}
		in := drawArrivals(t, 100)
		end := in[len(in)-1].at + 30*second
		byNext := play(New(s, 7, 0), in, end)
		looked := New(s, 7, 0)
		var byLooking []Result
		look := func(at int64) {
			for r, ok := looked.Take(at); ok; r, ok = looked.Take(at) {
				byLooking = append(byLooking, r)
			}
		}
		at := int64(0)
		for _, a := range in {
			for ; at < a.at; at += 10 * us {
				look(at)
			}
			looked.Offer(a.at, a.Packet)
		}
		look(end)
		a, b := own(byNext, Delivered), own(byLooking, Delivered)
		if len(a) != len(b) {
			t.Fatalf("%d delivered by Next, %d by looking", len(a), len(b))
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("packet %d: by Next %+v, by looking %+v", i, a[i], b[i])
			}
		}
		total := len(own(byNext, Delivered)) + len(own(byNext, Lost)) + len(own(byNext, Overflowed)) + len(own(byNext, Early)) + len(own(byNext, Policed))
		if total != len(in) {
			t.Fatalf("%d of %d packets have a fate", total, len(in))
		}
	})
}

func drawSpec(t *rapid.T) Spec {
	s := Spec{
		Rate:  unit.Rate(rapid.Uint64Range(5e6, 1e9).Draw(t, "rate")),
		Delay: time.Duration(rapid.Int64Range(0, 100*ms).Draw(t, "delay")),
	}
	some := func(name string) bool { return rapid.Bool().Draw(t, name) }
	if some("jitter") {
		s.Jitter = Jitter{Amount: min(time.Millisecond, s.Delay), Normal: some("normal"), Reorder: some("reorder")}
		if s.Jitter.Amount == 0 {
			s.Jitter = Jitter{}
		}
	}
	if some("loss") {
		s.Loss = Loss{ToBad: 0.1, ToGood: 0.3, Bad: 0.8}
	}
	if some("red") {
		s.RED = &RED{Profile: Profile{Amount{Bytes: 3000}, Amount{Bytes: 9000}, 0.2}, Weight: 0.1, ECN: some("ecn")}
	}
	switch rapid.IntRange(0, 3).Draw(t, "limiter") {
	case 1:
		s.Bucket = &Bucket{Rate: 20 * unit.Mbit, Size: 10_000, Peak: 200 * unit.Mbit, Gift: 5000, GiftEvery: 3 * time.Millisecond}
	case 2:
		s.Xen = &Xen{Interval: time.Millisecond, Tokens: 5000}
	case 3:
		s.Bucket = &Bucket{Rate: 50 * unit.Mbit, Size: 10_000, Police: true}
	}
	if some("active") {
		s.Active = &Active{On: time.Millisecond, Off: 3 * time.Millisecond}
	}
	if some("suspension") {
		s.Suspension = &Suspension{Packets: 5, Time: time.Millisecond}
	}
	if some("cross") {
		s.Cross = []Cross{{Load: 3 * unit.Mbit}, {Load: unit.Mbit, Model: Pareto, Sizes: []int{60, 1514}}}
	}
	return s
}

// A new rate applies from the next segment that begins; the order of segments and those on the wire
// are unchanged.
func TestChange(t *testing.T) {
	l := New(Spec{Rate: 12_112_000, Delay: 50 * time.Millisecond, Queue: Amount{Segments: 100}}, 1, 0)
	for range 10 {
		l.Offer(0, Packet{Size: FullFrame}) // 1 ms each
	}
	l.Change(2*ms+ms/2, Spec{Rate: 1_211_200, Delay: 10 * time.Millisecond, Queue: Amount{Segments: 100}})
	got := play(l, nil, second)
	for i, r := range got {
		departed, released := int64(i+1)*ms, int64(i+1)*ms+50*ms
		if i > 2 {
			departed = 3*ms + int64(i-2)*10*ms
			released = max(departed+10*ms, 52*ms)
			// Segments that are due before their predecessor wait for it.
			released = max(released, 53*ms)
		}
		if i == 2 {
			released = 53 * ms
		}
		if r.Departed != departed || r.Released != released {
			t.Errorf("segment %d departed at %.2f ms and was released at %.2f, want %.2f and %.2f", i, float64(r.Departed)/1e6, float64(r.Released)/1e6, float64(departed)/1e6, float64(released)/1e6)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d of 10 came through", len(got))
	}
}

// After reordering has been turned off, a segment that waits for its tokens is still released before a
// late earlier one, and Next returns its time.
func TestChangeOfOrder(t *testing.T) {
	l := New(Spec{Delay: 100 * time.Millisecond, Jitter: Jitter{Amount: 1, Reorder: true}}, 1, 0)
	l.Offer(0, Packet{Size: FullFrame})
	l.Change(ms, Spec{Xen: &Xen{Interval: 10 * time.Millisecond, Tokens: FullFrame}, Delay: time.Millisecond})
	for range 5 {
		l.Offer(ms, Packet{Size: FullFrame}) // each has an interval of its own
	}
	n := 0
	for at, ok := l.Next(); ok; at, ok = l.Next() {
		for r, ok := l.Take(at); ok; r, ok = l.Take(at) {
			n++
			if r.Released != at || r.Number == 1 != (n == 6) {
				t.Errorf("packet %d is number %d, due at %d us and taken at %d", r.Number, n, r.Released/us, at/us)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d of 6 came through", n)
	}
}

// The same seed gives the same results, another seed gives others.
func TestSeed(t *testing.T) {
	s := Spec{Rate: 100 * unit.Mbit, Delay: 5 * time.Millisecond, Loss: Loss{Probability: 0.1}, Jitter: Jitter{Amount: time.Millisecond}, Cross: []Cross{{Load: 30 * unit.Mbit}}}
	run := func(seed uint64) []Result { return play(New(s, seed, 0), greedy(1, 200*us, second), 2*second) }
	a, b, c := run(1), run(1), run(2)
	if len(a) != len(b) {
		t.Fatal("two runs of one seed differ")
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("two runs of one seed differ: %+v and %+v", a[i], b[i])
		}
	}
	if len(a) == len(c) && a[100] == c[100] && len(own(a, Lost)) == len(own(c, Lost)) {
		t.Error("two seeds give the same")
	}
}

// BenchmarkLink measures the cost of a packet: the emulator carries 82,000 a second at 1 Gbit/s.
func BenchmarkPacket(b *testing.B) {
	l := New(Spec{Rate: unit.Gbit, Delay: 25 * time.Millisecond, Queue: Amount{Time: 50 * time.Millisecond}, Loss: Loss{Probability: 0.001}}, 1, 0)
	now := int64(0)
	for b.Loop() {
		now += 12 * us
		l.Offer(now, Packet{Size: FullFrame})
		l.Next()
		l.Take(now)
	}
}
