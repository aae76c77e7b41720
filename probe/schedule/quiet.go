package schedule

import (
	"slices"
	"time"
)

// Window is a time of every day, or of some days of the week, in which no measurement
// starts or runs. A window whose end is before its begin ends on the next day.
type Window struct {
	// Days are the days on which the window begins; none is every day.
	Days []string `json:"days,omitempty"`
	From Clock    `json:"from"`
	To   Clock    `json:"to"`
}

// days are the names of the days in the order of time.Weekday.
var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Contains reports whether t is in the window, in the time zone of t.
func (w Window) Contains(t time.Time) bool {
	at := Clock(t.Hour()*60 + t.Minute())
	on := func(day time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, days[day]) }
	if w.From < w.To {
		return on(t.Weekday()) && w.From <= at && at < w.To
	}
	return on(t.Weekday()) && at >= w.From || on((t.Weekday()+6)%7) && at < w.To
}

// InQuietHours reports whether a period overlaps quiet hours.
func (s *Schedule) InQuietHours(from, until time.Time) bool {
	return s.silent(s.location(), from, until)
}

// silent checks the begin of the period and each whole minute, since windows begin at
// whole minutes.
func (s *Schedule) silent(zone *time.Location, from, until time.Time) bool {
	for at := from; !at.After(until); at = at.Truncate(time.Minute).Add(time.Minute) {
		if slices.ContainsFunc(s.Quiet, func(w Window) bool { return w.Contains(at.In(zone)) }) {
			return true
		}
	}
	return false
}
