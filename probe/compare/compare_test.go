package compare_test

import (
	"math"
	"slices"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
)

// arrivals returns a sample from a string of a's and b's, in the order of arrival.
func arrivals(order string) probe.JointSample {
	var s probe.JointSample
	var n [2]int
	for i, c := range order {
		from := int(c - 'a')
		s.Arrived = append(s.Arrived, probe.JointArrival{From: from, Number: n[from], At: int64(i)})
		n[from]++
	}
	for _, count := range n {
		s.Trains = append(s.Trains, probe.Uniform("", count, 1500, 0))
		s.Sent = append(s.Sent, make([]int64, count))
	}
	return s
}

// Figures 3.5 and 3.6. The text has the order from right to left.
func TestFigure36(t *testing.T) {
	s := arrivals("babbabbaaa")
	a, b := compare.ASND(&s, 0, 1), compare.ASND(&s, 1, 0)
	if !slices.Equal(a, []int{2, 0, 2}) || !slices.Equal(b, []int{2, 2}) {
		t.Errorf("histograms %v and %v", a, b)
	}
	if got := compare.Compare(a, b); got != 2 {
		t.Errorf("the second path has %v times the capacity, want 2", got)
	}
	// The neighbours of a lost packet have no difference.
	s.Arrived = slices.Delete(s.Arrived, 4, 5)
	if a := compare.ASND(&s, 0, 1); !slices.Equal(a, []int{2}) {
		t.Errorf("with a loss: %v", a)
	}
}

// Algorithms 1 and 3 on histograms with fractions, with noise, and with a peak that
// weighting moves.
func TestEstRatio(t *testing.T) {
	for _, c := range []struct {
		h        []int
		one, two float64
		peaks    []int
	}{
		{[]int{9, 0, 0, 30, 10}, 3.25, 3.25, []int{3}},
		{[]int{9, 50}, 1, 1, []int{1}},
		{[]int{9, 0, 0, 0, 100, 0, 0, 1}, 4, 4, []int{4}},
		{[]int{9, 30, 10, 0, 0, 2, 20, 1}, 1.25, (5*2 + 6*20) / 22.0, []int{1, 6}},
		{[]int{9}, 0, 0, nil},
		{nil, 0, 0, nil},
	} {
		if got := compare.EstRatio(c.h); math.Abs(got-c.one) > 1e-9 {
			t.Errorf("%v: EST-RATIO %v, want %v", c.h, got, c.one)
		}
		if got := compare.EstRatio2(c.h); math.Abs(got-c.two) > 1e-9 {
			t.Errorf("%v: EST-RATIO2 %v, want %v", c.h, got, c.two)
		}
		if got := compare.Peaks(compare.Denoised(c.h)); !slices.Equal(got, c.peaks) {
			t.Errorf("%v: peaks %v, want %v", c.h, got, c.peaks)
		}
	}
}

// Invalid and empty samples do not break a method.
func TestInvalidSamples(t *testing.T) {
	silent := arrivals("aaaa")
	silent.Trains[1] = probe.Uniform("", 4, 1500, 0)
	foreign := arrivals("ababab")
	foreign.Arrived = append(foreign.Arrived, probe.JointArrival{From: 7}, probe.JointArrival{From: 1, Number: 99}, probe.JointArrival{From: 0, Number: -1})
	flagged := arrivals("ababab")
	flagged.Reordered = true
	for i, samples := range [][]probe.JointSample{
		nil, {{}}, {silent}, {silent, silent}, {foreign}, {flagged}, {arrivals("ab")},
		{{Joint: probe.Joint{Purpose: "compare/blocks", Trains: make([]probe.Train, 2)}, Sent: make([][]int64, 2)}},
		{{Joint: probe.Joint{Trains: make([]probe.Train, 3)}}},
	} {
		ours, seed := compare.SmallBlocks{}, compare.PathComp{}
		ours.Next(samples)
		seed.Next(samples)
		if r := ours.Estimate(samples); r.Ratio.Known() {
			t.Errorf("samples %d: SmallBlocks returns %v", i, r.Ratio)
		}
		seed.Estimate(samples)
	}
}

// Four senders of 1, 2, 4 and 8 are ranked from pairs that contradict each other within
// their intervals. A fifth has no valid pair.
func TestRank(t *testing.T) {
	truth := []float64{4, 1, 8, 2, 5}
	var pairs []compare.Pair
	for a := range 4 {
		for b := range a {
			off, width := 1.01, 0.02
			if a == 3 && b == 0 {
				off, width = 1.3, 0.6 // a pair with much cross traffic
			}
			r := truth[b] / truth[a] * off
			pairs = append(pairs, compare.Pair{A: a, B: b, Result: compare.Result{Ratio: probe.Estimate{
				Value: r, Low: r * math.Exp(-width/2), High: r * math.Exp(width/2),
			}}})
		}
	}
	pairs = append(pairs, compare.Pair{A: 4, B: 0, Result: compare.Result{Ratio: probe.NoEstimate("")}})
	got := compare.Rank(5, pairs)
	var order []int
	for _, r := range got {
		order = append(order, r.Sender)
		want := truth[r.Sender] / 8
		if e := r.Relative; math.Abs(e.Value/want-1) > 0.015 || e.Low > e.Value || e.High < e.Value {
			t.Errorf("sender %d has %v of the fastest, want %v", r.Sender, e, want)
		}
	}
	if !slices.Equal(order, []int{2, 0, 3, 1}) {
		t.Errorf("order is %v", order)
	}
	if compare.Rank(0, nil) != nil {
		t.Error("Rank of no senders is not nil")
	}
}

// Two returns the part of two of three senders.
func TestTwo(t *testing.T) {
	s := arrivals("abab")
	s.Trains, s.Sent = append(s.Trains, s.Trains[0]), append(s.Sent, s.Sent[0])
	s.Arrived = slices.Insert(s.Arrived, 1, probe.JointArrival{From: 2}, probe.JointArrival{From: 2, Number: 1})
	two := compare.Two(&s, 2, 1)
	var got []int
	for _, a := range two.Arrived {
		got = append(got, a.From)
	}
	if !slices.Equal(got, []int{0, 0, 1, 1}) || len(two.Trains) != 2 || len(two.Sent) != 2 {
		t.Errorf("%+v", two)
	}
}
