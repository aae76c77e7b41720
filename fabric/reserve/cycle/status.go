package cycle

import (
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Status is what is known of a flow.
type Status struct {
	Flow  FlowID
	Point Point
	// Class is 1 to 4, or share.BestEffort.
	Class    int
	Reserved unit.Rate
	// Offered and Delivered are the rates of the latest measurement, 0 before the first.
	Offered, Delivered unit.Rate
	// Limit is what the flow has now: the tracking variable of the paper, which is the rate of its meter.
	Limit unit.Rate
	// Unresponsive reports that what the flow offers is known although its point drops it: its senders are those of UDP.
	Unresponsive bool
	// Spare reports that the flow only reserves the bandwidth of a spare path.
	Spare bool
	Seizures
	// Missing are the cycles without a measurement.
	Missing uint64
	// Began is when the flow got its first limit, and Full the latest time at which it had offered its whole
	// reservation in an interval, zero if it never has: it uses less than it holds since then.
	Began, Full time.Time
}

// Idle returns since when a flow has not used all that it holds. ok is false for best effort and spare paths, which hold
// nothing to use.
func (s Status) Idle() (since time.Time, ok bool) {
	if s.Class == share.BestEffort || s.Spare {
		return time.Time{}, false
	}
	if s.Full.IsZero() {
		return s.Began, true
	}
	return s.Full, true
}

// Flows returns the state of each flow, in an order that stays until Changes.Replaced.
func (c *Cycle) Flows() []Status {
	all := make([]Status, len(c.states))
	for i, s := range c.states {
		all[i] = s.status()
	}
	return all
}

func (s *state) status() Status {
	return Status{
		Flow: s.id, Point: s.point, Class: s.class, Reserved: s.reserved,
		Offered: s.offered, Delivered: s.delivered, Limit: s.limit, Unresponsive: s.unresponsive, Spare: len(s.spares) > 0,
		Seizures: s.Seizures, Missing: s.missing, Began: s.began, Full: s.full,
	}
}

// LimitOf returns the limit of a flow, 0 for an unknown one.
func (c *Cycle) LimitOf(id FlowID) unit.Rate {
	if s := c.byID[id]; s != nil {
		return s.limit
	}
	return 0
}

// Tight reports whether the scheme has use for more than one reading in a cycle of the flow that has an index in Flows.
func (c *Cycle) Tight(index int) bool {
	t, ok := c.scheme.(share.Tighter)
	return !ok || index < len(c.states) && t.Tight(index)
}

// Minutes returns the accounts of the current minute so far, for a caller that ends.
func (c *Cycle) Minutes() []Minute {
	all := append([]Minute(nil), c.ended...)
	for _, s := range c.states {
		if !s.minute.empty() {
			all = append(all, s.minute)
		}
	}
	return all
}

// Now returns the time of the calendar at the last call, and how far the wall clock was ahead of it.
func (c *Cycle) Now() (now time.Time, off time.Duration) { return c.now, c.calendar.Off() }
