// Package rounded formats measured quantities for people: three digits and a unit. Zero is "0".
// Package unit formats quantities exactly, so that they can be read back.
//
// Units: rates in bits per second, sizes in bytes.
package rounded

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit"
)

// Rate formats a measured rate: "95.5Mbit".
func Rate(bps float64) string {
	if bps == 0 {
		return "0"
	}
	for _, s := range []struct {
		scale float64
		name  string
	}{{float64(unit.Gbit), "Gbit"}, {float64(unit.Mbit), "Mbit"}, {float64(unit.Kbit), "kbit"}} {
		// 0.9995, because rounding would give 1000 of the smaller unit.
		if bps >= s.scale*0.9995 {
			return Digits(bps/s.scale) + s.name
		}
	}
	return fmt.Sprintf("%.0fbit", bps)
}

// Amount formats a configured rate: exactly if the text is short.
func Amount(bps uint64) string {
	if bps == 0 {
		return "0"
	}
	if s := unit.Rate(bps).String(); len(s) <= 8 {
		return s
	}
	return Rate(float64(bps))
}

// Bytes formats a measured size: "2.00KiB".
func Bytes(n uint64) string {
	if n == 0 {
		return "0"
	}
	for _, s := range []struct {
		scale float64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if float64(n) >= s.scale {
			return Digits(float64(n)/s.scale) + s.name
		}
	}
	return fmt.Sprint(n, "B")
}

// PerSecond formats a number of events per second.
func PerSecond(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 999.5e3:
		return Digits(v/1e6) + "M"
	case v >= 9999.5:
		return Digits(v/1e3) + "k"
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Delay formats a measured time: "1.23ms".
func Delay(d time.Duration) string {
	switch ms := d.Seconds() * 1e3; {
	case d == 0:
		return "0"
	case ms >= 999.5:
		return Digits(ms/1e3) + "s"
	case ms >= 0.9995:
		return Digits(ms) + "ms"
	}
	return fmt.Sprintf("%.0fus", d.Seconds()*1e6)
}

// Digits formats a number with three digits.
func Digits(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
