package schedule

import (
	"slices"
	"time"
)

// Window is a time of every day, or of some days of the week, in which nothing is measured. One that
// ends before it begins ends on the next day.
type Window struct {
	// Days on which it begins; none is every day.
	Days []string `json:"days,omitempty"`
	From Clock    `json:"from"`
	To   Clock    `json:"to"`
}

// days are their names, as time.Weekday has them.
var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// has tells whether a time is in it, by the clock and calendar of that time's place.
func (w Window) has(t time.Time) bool {
	at := Clock(t.Hour()*60 + t.Minute())
	on := func(day time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, days[day]) }
	if w.From < w.To {
		return on(t.Weekday()) && w.From <= at && at < w.To
	}
	return on(t.Weekday()) && at >= w.From || on((t.Weekday()+6)%7) && at < w.To
}

// Silent tells whether any of a time is in quiet hours.
func (s *Schedule) Silent(from, until time.Time) bool { return s.silent(s.location(), from, until) }

// silent looks at the beginning and at each whole minute: windows begin at one.
func (s *Schedule) silent(zone *time.Location, from, until time.Time) bool {
	for at := from; !at.After(until); at = at.Truncate(time.Minute).Add(time.Minute) {
		if slices.ContainsFunc(s.Quiet, func(w Window) bool { return w.has(at.In(zone)) }) {
			return true
		}
	}
	return false
}
