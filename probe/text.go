package probe

import (
	"fmt"
	"math"
)

// FormatRate formats a rate in bit/s with four digits, so that an interval of 0.1 % is
// visible.
func FormatRate(bps float64) string {
	scale, name := 1e3, "kbit"
	switch {
	case bps >= 0.99995e9:
		scale, name = 1e9, "Gbit"
	case bps >= 0.99995e6:
		scale, name = 1e6, "Mbit"
	}
	v := bps / scale
	return fmt.Sprintf("%.*f%s", max(0, 3-int(math.Log10(max(v, 1)))), v, name)
}

// FormatBytes formats a number of bytes with about three digits.
func FormatBytes(b float64) string {
	switch {
	case b >= 1e6:
		return fmt.Sprintf("%.2f MB", b/1e6)
	case b >= 1e4:
		return fmt.Sprintf("%.1f kB", b/1e3)
	}
	return fmt.Sprintf("%.0f B", b)
}

// Format formats the value with its interval, the lower bound, or the reason why there is
// no value.
func (e Estimate) Format(number func(float64) string) string {
	switch {
	case !e.Known():
		return "cannot estimate: " + e.Reason
	case e.AtLeast && e.Because != "":
		return "at least " + number(e.Value) + ": " + e.Because
	case e.AtLeast:
		return "at least " + number(e.Value)
	case e.Low == 0 && e.High == 0:
		return number(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", number(e.Value), number(e.Low), number(e.High))
}
