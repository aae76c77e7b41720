package wire

import (
	"testing"
	"time"
)

// Late and very late are above the bound and above 200 bounds.
func TestLate(t *testing.T) {
	s := Stats{LateBound: time.Millisecond}
	for _, by := range []time.Duration{-time.Second, time.Millisecond, 200 * time.Millisecond, 200*time.Millisecond + 1, time.Second, 2 * time.Millisecond} {
		s.late(int64(by))
	}
	if s.Late != 4 || s.VeryLate != 2 || s.WorstLate != time.Second {
		t.Errorf("%d late, %d very, %v", s.Late, s.VeryLate, s.WorstLate)
	}
}
