package probe

import (
	"fmt"
	"math"
)

// BitRate is a rate in bit/s with four digits: an interval of 0.1 % shows.
func BitRate(bps float64) string {
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

// SizeText is a number of bytes with three digits or so.
func SizeText(b float64) string {
	switch {
	case b >= 1e6:
		return fmt.Sprintf("%.2f MB", b/1e6)
	case b >= 1e4:
		return fmt.Sprintf("%.1f kB", b/1e3)
	}
	return fmt.Sprintf("%.0f B", b)
}

// Text is the value with its interval, a bound, or why there is none.
func (e Estimate) Text(number func(float64) string) string {
	switch {
	case !e.Known():
		return "cannot tell: " + e.Cannot
	case e.AtLeast:
		return "at least " + number(e.Value)
	case e.Low == 0 && e.High == 0:
		return number(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", number(e.Value), number(e.Low), number(e.High))
}
