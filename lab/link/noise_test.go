package link

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// Independent losses are binomial: within 4 sigma over a million segments.
func TestLoss(t *testing.T) {
	const n = 1_000_000
	for _, p := range []float64{0.0001, 0.001, 0.01, 0.5} {
		l := New(Spec{Loss: Loss{Probability: p}}, 3, 0)
		lost := 0
		for i := range int64(n) {
			l.Offer(i*us, Packet{Size: FullFrame})
			if r, _ := l.Take(i * us); r.Fate == Lost {
				lost++
			}
		}
		if sigma := math.Sqrt(n * p * (1 - p)); math.Abs(float64(lost)-n*p) > 4*sigma {
			t.Errorf("%v: %d of %d lost, sigma is %.0f", p, lost, n, sigma)
		}
	}
}

// Two-state losses have their mean rate, and bursts of 1/ToGood segments on average.
func TestTwoStates(t *testing.T) {
	const n = 1_000_000
	loss := Loss{ToBad: 0.01, ToGood: 0.25, Bad: 1}
	l := New(Spec{Loss: loss}, 3, 0)
	lost, bursts, before := 0, 0, false
	for i := range int64(n) {
		l.Offer(i*us, Packet{Size: FullFrame})
		r, _ := l.Take(i * us)
		now := r.Fate == Lost
		if now {
			lost++
			if !before {
				bursts++
			}
		}
		before = now
	}
	if got := float64(lost) / n; math.Abs(got-loss.Mean()) > 0.03*loss.Mean() {
		t.Errorf("%.4f lost, want %.4f", got, loss.Mean())
	}
	if got := float64(lost) / float64(bursts); math.Abs(got-4) > 0.1 {
		t.Errorf("bursts of %.2f, want 4", got)
	}
}

// A lost segment has used serialiser time.
func TestLostSegmentsTakeTime(t *testing.T) {
	got := play(New(Spec{Rate: 12_112_000, Loss: Loss{Probability: 0.5}, Queue: Amount{Segments: 1000}}, 1, 0), greedy(1000, second, second), 10*second)
	last := int64(0)
	for _, r := range got {
		last = max(last, r.Departed)
	}
	if last != second || len(own(got, Lost)) < 400 {
		t.Errorf("the last of 1000 departed at %d, %d were lost", last, len(own(got, Lost)))
	}
}

// Jitter stays within its bounds, has its mean, and reorders only with Reorder.
func TestJitter(t *testing.T) {
	for _, normal := range []bool{false, true} {
		for _, reorder := range []bool{false, true} {
			s := Spec{Delay: 20 * time.Millisecond, Jitter: Jitter{Amount: 2 * time.Millisecond, Normal: normal, Reorder: reorder}}
			got := play(New(s, 1, 0), greedy(1, 100*us, 10*second), 11*second)
			overtaken, sum, width := 0, 0.0, 2*ms
			if normal {
				width = 6 * ms
			}
			for i, r := range got {
				d := r.Released - r.Arrived
				sum += float64(d)
				if d < 20*ms-width || d > 20*ms+width {
					t.Fatalf("a delay of %d us", d/us)
				}
				if i > 0 && r.Number < got[i-1].Number {
					overtaken++
				}
				if i > 0 && r.Released < got[i-1].Released {
					t.Fatal("taken out of order")
				}
			}
			if (overtaken > 1000) != reorder || !reorder && overtaken > 0 {
				t.Errorf("normal %v, reorder %v: %d of %d overtaken", normal, reorder, overtaken, len(got))
			}
			// In order, each segment waits for the slowest before it.
			if mean := sum / float64(len(got)) / 1e6; reorder && math.Abs(mean-20) > 0.1 {
				t.Errorf("mean delay %.2f ms", mean)
			}
		}
	}
}

// A sleeping sender's packets leave all at once when it wakes.
func TestActive(t *testing.T) {
	s := Spec{Active: &Active{On: 10 * time.Millisecond, Off: 30 * time.Millisecond}}
	got := play(New(s, 1, 0), greedy(1, ms, second), 2*second)
	if len(got) != 1000 {
		t.Fatalf("%d of 1000", len(got))
	}
	for i, r := range got {
		want := int64(i) * ms
		if phase := want % (40 * ms); phase >= 10*ms {
			want += 40*ms - phase
		}
		if r.Released != want {
			t.Fatalf("packet %d released at %d us, want %d", i, r.Released/us, want/us)
		}
	}
}

// When the Active of a sleeping sender is changed or removed, the sender loses no packet that it
// holds, and sends none before the change. Without a rate no queue limits it.
func TestActiveChanges(t *testing.T) {
	for name, c := range map[string]struct {
		active *Active
		want   int64
	}{
		"awake from now on": {nil, 25 * ms},
		"awake earlier":     {&Active{On: 15 * time.Millisecond, Off: 5 * time.Millisecond}, 25 * ms},
		"asleep as before":  {&Active{On: 20 * time.Millisecond, Off: 20 * time.Millisecond}, 40 * ms},
	} {
		l := New(Spec{Active: &Active{On: 10 * time.Millisecond, Off: 30 * time.Millisecond}}, 1, 0)
		for range 50 {
			l.Offer(12*ms, Packet{Size: FullFrame})
		}
		l.Change(25*ms, Spec{Active: c.active})
		got := play(l, nil, second)
		for i, r := range got {
			if r.Fate != Delivered || r.Arrived != c.want || r.Released != c.want {
				t.Fatalf("%s: packet %d arrived at %d us, fate %d, released at %d us, want %d", name, i, r.Arrived/us, r.Fate, r.Released/us, c.want/us)
			}
		}
		if len(got) != 50 {
			t.Errorf("%s: %d of 50", name, len(got))
		}
	}
}

// (N0, T0): N0 segments in a row, then none for T0. None is lost.
func TestSuspension(t *testing.T) {
	s := Spec{Delay: time.Millisecond, Suspension: &Suspension{Packets: 30, Time: 4 * time.Millisecond}}
	got := play(New(s, 1, 0), greedy(1, 100*us, second), 2*second)
	if len(got) != 10_000 {
		t.Fatalf("%d of 10000", len(got))
	}
	for i := 30; i < len(got); i += 30 {
		if gap := got[i].Released - got[i-1].Released; gap < 4*ms {
			t.Fatalf("%d us after %d segments", gap/us, i)
		}
	}
	for i := 1; i < len(got); i++ {
		if i%30 != 0 && got[i].Released-got[i-1].Released > 4*ms {
			t.Fatalf("a pause after %d segments", i)
		}
	}
}

// RED conforms to its definition (Floyd and Jacobson, section 7): while the average is constant, the
// number of arrivals from one mark to the next is uniform on 1 to 1/pb, so that its mean is (1/pb+1)/2
// and its maximum 1/pb.
func TestREDMarksUniformly(t *testing.T) {
	l := redAt(t, 40, Profile{Amount{Segments: 20}, Amount{Segments: 60}, 0.1})
	const pb = 0.1 * (40 - 20) / (60 - 20) // 0.05
	var gaps []float64
	for i, last := 0, -1; i < 200_000; i++ {
		l.red.avg = 40
		if l.red.verdict(0, 0, 0, 40, l.redDice) {
			if last >= 0 {
				gaps = append(gaps, float64(i-last))
			}
			last = i
		}
	}
	sum, longest := 0.0, 0.0
	for _, g := range gaps {
		sum += g
		longest = max(longest, g)
	}
	// count starts at 0, so that the first arrival after a mark has pa = pb/(1-pb).
	if mean := sum / float64(len(gaps)); math.Abs(mean-(1/pb)/2) > 0.3 || longest > 1/pb {
		t.Errorf("marks every %.2f on average and %v at most, want %.2f and %.0f", mean, longest, 1/pb/2, 1/pb)
	}
}

func redAt(t *testing.T, avg float64, p Profile, classes ...REDClass) *Link {
	s := Spec{Rate: unit.Mbit, Queue: Amount{Segments: 1000}, RED: &RED{Profile: p, ECN: true, Classes: classes}}
	if bad := s.Problems(); len(bad) > 0 {
		t.Fatal(bad)
	}
	l := New(s, 1, 0)
	l.red.avg = avg
	return l
}

// Below min RED marks nothing, above max everything; each code point has its own profile; packets that
// can be marked are marked and pass.
func TestREDProfiles(t *testing.T) {
	low := Profile{Amount{Segments: 20}, Amount{Segments: 60}, 0.1}
	high := Profile{Amount{Segments: 100}, Amount{Segments: 200}, 0.1}
	for _, c := range []struct {
		avg    float64
		dscp   uint8
		ecn    uint8
		fate   Fate
		marked bool
	}{
		{10, 0, 0, Delivered, false}, {90, 0, 0, Early, false}, {90, 0, 1, Delivered, true},
		{90, 46, 0, Delivered, false}, {90, 46, 2, Delivered, false}, {250, 46, 2, Delivered, true}, {250, 46, 0, Early, false},
	} {
		l := redAt(t, c.avg, low, REDClass{[]uint8{46}, high})
		l.Offer(0, Packet{Size: FullFrame}) // begins at once
		l.red.avg, l.red.weight = c.avg, 0
		l.Offer(0, Packet{Size: FullFrame, DSCP: c.dscp, ECN: c.ecn, Ref: 1})
		for r, ok := l.Take(second); ok; r, ok = l.Take(second) {
			if r.Ref == 1 && (r.Fate != c.fate || r.Marked != c.marked) {
				t.Errorf("%+v: fate %d, marked %v", c, r.Fate, r.Marked)
			}
		}
	}
}

// The average follows the queue with the weight, and decays over idle time as if small packets had
// arrived (section 11).
func TestREDAverage(t *testing.T) {
	s := Spec{Rate: 12_112_000, Queue: Amount{Segments: 1000}, RED: &RED{Profile: Profile{Amount{Segments: 500}, Amount{Segments: 900}, 0.1}, Weight: 0.01}}
	l := New(s, 1, 0)
	want := 0.0
	for i := range 101 {
		l.Offer(0, Packet{Size: FullFrame})
		if i > 1 { // the first begins at once, the second finds an empty queue
			want += 0.01 * (float64(i-1) - want)
		}
	}
	if math.Abs(l.red.avg-want) > 1e-9 {
		t.Errorf("average %.4f, want %.4f", l.red.avg, want)
	}
	// All have begun by 100 ms; 50 ms of idle time are 50 frame times.
	l.Offer(150*ms, Packet{Size: FullFrame})
	if want *= math.Pow(0.99, 50); math.Abs(l.red.avg-want) > 1e-9 {
		t.Errorf("average %.4f after idling, want %.4f", l.red.avg, want)
	}
}

// A step marks the packets that find the queue at the threshold, if they can be marked.
func TestMark(t *testing.T) {
	l := New(Spec{Rate: unit.Mbit, Mark: Amount{Segments: 5}, Queue: Amount{Segments: 100}}, 1, 0)
	for i := range 20 {
		l.Offer(0, Packet{Size: 100, ECN: uint8(i % 2)})
	}
	for _, r := range play(l, nil, second) {
		// The first begins at once: the n-th finds n-2 queued.
		if want := r.Number >= 7 && r.ECN == 1; r.Marked != want {
			t.Errorf("packet %d: marked %v", r.Number, r.Marked)
		}
	}
}
