package fabric

import (
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// With a reading per second there are two minutes of readings after an hour of means, and no more however long it goes on.
func TestHistory(t *testing.T) {
	var h History
	if all := h.All(); len(all) != 0 {
		t.Errorf("an empty history has %v", all)
	}
	const seconds = 3 * 3600
	for s := range seconds {
		h.Add(at(1000*s), Traffic{Rate: float64(1_000_000 * (s / 30)), Drops: 2, Errors: math.NaN()})
	}
	all := h.All()
	if len(all) != HistoryMeans+1+HistoryReadings {
		t.Fatalf("%d items", len(all))
	}
	last, means := all[len(all)-1], all[:HistoryMeans]
	if !last.At.Equal(at(1000*(seconds-1))) || last.Rate != 1e6*float64((seconds-1)/30) || last.Drops != 2 || !math.IsNaN(last.Errors) {
		t.Errorf("the last item is %+v", last)
	}
	for _, m := range means { // those of 30 readings with one rate
		s := int(m.At.Sub(start).Seconds())
		if s%30 != 29 || m.Rate != 1e6*float64(s/30) || m.Drops != 2 {
			t.Errorf("a mean is %+v", m)
		}
	}
	if took := last.At.Sub(all[0].At); took < time.Hour+119*time.Second || took > time.Hour+3*time.Minute {
		t.Errorf("the items are of %v", took)
	}
}

// A full history has 4 KB, as the documentation says.
func TestHistorySize(t *testing.T) {
	if size := unsafe.Sizeof(History{}) + (HistoryReadings+HistoryMeans)*unsafe.Sizeof(sample{}); size > 4096 {
		t.Errorf("a history has %d bytes", size)
	}
}

// Every reading is in one item: the items are in the order of time, and with as many readings as each has, their mean is that of the
// readings.
func TestHistoryLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h History
		ms, sum, n := 0, 0.0, rapid.IntRange(1, 400).Draw(t, "readings")
		longest := rapid.SampledFrom([]int{1000, 10_000}).Draw(t, "longest")
		slots := map[int]int{} // readings that have left the recent ones, by the mean that they are in
		var at0 []int
		for range n {
			ms += rapid.IntRange(100, longest).Draw(t, "ms")
			rate := float64(rapid.IntRange(0, 1000).Draw(t, "rate"))
			h.Add(at(ms), Traffic{Rate: rate})
			sum, at0 = sum+rate, append(at0, ms)
		}
		for _, ms := range at0[:max(0, n-HistoryReadings)] {
			slots[(ms-at0[0])/100/300]++
		}
		all := h.All()
		if !slices.IsSortedFunc(all, func(a, b TrafficAt) int { return a.At.Compare(b.At) }) {
			t.Fatalf("the items are not in order")
		}
		means := all[:len(all)-min(n, HistoryReadings)]
		if len(means) != min(len(slots), HistoryMeans+1) {
			t.Fatalf("%d means, want %d", len(means), len(slots))
		}
		if len(slots) > HistoryMeans+1 {
			return // the oldest are lost
		}
		got := 0.0
		for _, m := range means {
			got += m.Rate * float64(slots[int(m.At.Sub(at(at0[0]))/(HistoryMean))])
		}
		for _, r := range all[len(means):] {
			got += r.Rate
		}
		if math.Abs(got-sum) > 1e-3*sum+1e-3 {
			t.Fatalf("the items have a sum of %v, and the readings %v", got, sum)
		}
	})
}
