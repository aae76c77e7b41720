package fabric

import (
	"testing"
	"time"
)

func TestGap(t *testing.T) {
	const ms = int64(time.Millisecond)
	a := arrivals{at: []int64{5 * ms, 10 * ms, 12 * ms, 42 * ms, 43 * ms}}
	for _, c := range []struct{ from, to, want int64 }{
		{0, 45 * ms, 30 * ms},
		{0, 12 * ms, 5 * ms},        // until the first
		{10 * ms, 30 * ms, 18 * ms}, // from the last until the end
		{43 * ms, 143 * ms, 100 * ms},
		{50 * ms, 60 * ms, 10 * ms}, // nothing at all
	} {
		if got := a.gap(c.from, c.to); got != time.Duration(c.want) {
			t.Errorf("from %v to %v: %v, want %v", time.Duration(c.from), time.Duration(c.to), got, time.Duration(c.want))
		}
	}
}

func TestMissingAndOrder(t *testing.T) {
	a := arrivals{seq: []uint32{0, 1, 3, 2, 2, 6, 9}}
	if missing, repeated := a.missing(0, 8); missing != 3 || repeated != 1 { // 4, 5 and 7; 9 was not sent
		t.Errorf("%d missing and %d repeated, want 3 and 1", missing, repeated)
	}
	if missing, _ := a.missing(5, 8); missing != 2 {
		t.Errorf("%d missing from 5 on, want 2", missing)
	}
	if got := a.reordered(); got != 2 {
		t.Errorf("%d reordered, want 2", got)
	}
	if missing, repeated := (arrivals{}).missing(0, 3); missing != 3 || repeated != 0 {
		t.Errorf("of nothing: %d missing and %d repeated", missing, repeated)
	}
}
