package nl

import (
	"testing"
	"time"
)

// The kernel receives microseconds, stores units of 1,024 ns and reports microseconds
// (sch_fq_codel.c: fq_codel_change; codel.h: codel_time_to_us).
func TestCoDelTimeRoundTrip(t *testing.T) {
	for want := range CoDelTime(1 << 20) {
		kept := CoDelTime(uint64(want.microseconds()) * 1000 >> 10)
		if said := uint32(uint64(kept) << 10 / 1000); fromMicroseconds(said) != want {
			t.Fatalf("wrote %d, read %d", want, fromMicroseconds(said))
		}
	}
	if d := ToCoDelTime(5 * time.Millisecond).Duration(); d > 5*time.Millisecond || d < 4999*time.Microsecond {
		t.Errorf("5ms is %v", d)
	}
}
