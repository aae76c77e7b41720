package view

import (
	"fmt"
	"time"

	"headgate/unit"
)

// rate is a measured rate, three digits and a unit: "95.5Mbit".
func rate(bps float64) string {
	for _, s := range []struct {
		scale float64
		name  string
	}{{float64(unit.Gbit), "Gbit"}, {float64(unit.Mbit), "Mbit"}, {float64(unit.Kbit), "kbit"}} {
		// Where rounding would give 1000 of the smaller unit.
		if bps >= s.scale*0.9995 {
			return digits(bps/s.scale) + s.name
		}
	}
	return fmt.Sprintf("%.0fbit", bps)
}

// amount is a rate of the plan: exact if that is short.
func amount(bps uint64) string {
	if s := unit.Rate(bps).String(); len(s) <= 8 {
		return s
	}
	return rate(float64(bps))
}

func bytes(n uint64) string {
	for _, s := range []struct {
		scale float64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if float64(n) >= s.scale {
			return digits(float64(n)/s.scale) + s.name
		}
	}
	return fmt.Sprint(n, "B")
}

// perSecond is a count of events in a second.
func perSecond(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 999.5e3:
		return digits(v/1e6) + "M"
	case v >= 9999.5:
		return digits(v/1e3) + "k"
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func delay(d time.Duration) string {
	switch ms := d.Seconds() * 1e3; {
	case d == 0:
		return "0"
	case ms >= 999.5:
		return digits(ms/1e3) + "s"
	case ms >= 0.9995:
		return digits(ms) + "ms"
	}
	return fmt.Sprintf("%.0fus", d.Seconds()*1e6)
}

// digits prints three of them.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
