package rounded

import (
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999bit", 1e3: "1.00kbit", 39.87e6: "39.9Mbit", 999.96e6: "1.00Gbit", 12.34e9: "12.3Gbit"} {
		if got := Rate(v); got != want {
			t.Errorf("Rate(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[uint64]string{40e6: "40Mbit", 333_333_333: "333Mbit", 1_500_000: "1.5Mbit", 0: "0"} {
		if got := Amount(v); got != want {
			t.Errorf("Amount(%v) = %s, want %s", v, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 1023: "1023B", 1024: "1.00KiB", 1536 << 20: "1.50GiB", 3 << 40: "3.00TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%v) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0", 1234 * time.Nanosecond: "1us", 1234 * time.Microsecond: "1.23ms", 2 * time.Second: "2.00s"} {
		if got := Delay(d); got != want {
			t.Errorf("Delay(%v) = %s, want %s", d, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 9.96: "10", 9999: "9999", 10_000: "10.0k", 1.5e6: "1.50M"} {
		if got := PerSecond(v); got != want {
			t.Errorf("PerSecond(%v) = %s, want %s", v, got, want)
		}
	}
}
