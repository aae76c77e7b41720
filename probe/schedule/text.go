package schedule

import (
	"fmt"
	"time"
)

// Duration is a duration that is text in JSON: "6h", "15m".
type Duration time.Duration

// MarshalText formats d as "6h", not "6h0m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	t := time.Duration(d)
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if t > 0 && t%unit.of == 0 {
			return fmt.Sprintf("%d%s", t/unit.of, unit.name)
		}
	}
	return t.String()
}

// UnmarshalText parses d with time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q is invalid: use for example 15m or 6h", text)
	}
	*d = Duration(t)
	return nil
}

// Clock is a time of day in minutes: "08:30", or "24:00" for the end of the day.
type Clock int

// wholeDay is the end of a day.
const wholeDay Clock = 24 * 60

// MarshalText formats c as "08:30".
func (c Clock) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// UnmarshalText parses a time such as "08:30".
func (c *Clock) UnmarshalText(text []byte) error {
	if string(text) == wholeDay.String() {
		*c = wholeDay
		return nil
	}
	t, err := time.Parse("15:04", string(text))
	if err != nil || len(text) != len("15:04") {
		return fmt.Errorf("time of day %q is invalid: use for example 08:30", text)
	}
	*c = Clock(t.Hour()*60 + t.Minute())
	return nil
}
