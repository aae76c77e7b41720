package lab

import (
	"testing"

	"headgate.dev/headgate/unit"
)

// The cost of a half-empty link is not that of a full one.
func TestFilled(t *testing.T) {
	for got, ok := range map[float64]bool{0: false, 9.4e8: false, 9.6e8: true, 1.01e9: true} {
		if err := filled(got, unit.Gbit); (err == nil) != ok {
			t.Errorf("%g of 1 Gbit/s: %v", got, err)
		}
	}
}
