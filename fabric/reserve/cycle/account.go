package cycle

import (
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

const (
	// metPart is the part of its reservation that a flow must get to have it, in percent: the requirement's 99 %.
	metPart = 99
	// maxInterval is the longest time between two readings for which all fields are computed, as in agent/record. After
	// a longer gap, whether a reservation was met is not known.
	maxInterval = 10 * time.Second
)

// Minute is the usage of a flow in one minute of the calendar. An interval counts in the minute in which it ends.
type Minute struct {
	Minute int64 // since the epoch
	Flow   FlowID
	// Usage has the reservation as Guaranteed, and the seconds in which it was unmet as Unmet.
	usage.Usage
	// Peak is the highest offered rate between two readings.
	Peak unit.Rate
	// Missing are the cycles without a measurement.
	Missing int
}

// empty reports whether nothing was measured, nor to be measured.
func (m Minute) empty() bool { return m == Minute{Minute: m.Minute, Flow: m.Flow} }

// accounted is the account of one flow.
type accounted struct {
	minute Minute
	// full is the end of the last interval in which the flow offered its reservation, zero if it never has.
	full  time.Time
	began time.Time
}

// unmet reports whether an interval was one of a reservation that was not kept: the flow offered at least its reservation,
// and got less than 99 % of it. A flow that offers less, as TCP does under a low limit, lacks nothing by this definition.
func unmet(m measured, reserved unit.Rate) bool {
	holds := float64(reserved) / 8 * m.took.Seconds()
	return reserved > 0 && float64(m.offered) >= holds && float64(m.delivered)*100 < holds*metPart
}

// add adds what a flow did. lent is the part of its unused reservation that others used, 0 to 1.
func (a *accounted) add(m measured, reserved unit.Rate, lent float64, now time.Time) {
	u := usage.Usage{Seconds: m.took.Seconds(), Offered: m.offered, Delivered: m.delivered}
	if m.took <= maxInterval {
		u.Guaranteed = uint64(float64(reserved) / 8 * u.Seconds)
		if u.Delivered > u.Guaranteed {
			u.Borrowed = u.Delivered - u.Guaranteed
		}
		u.Lent = uint64(lent * float64(u.Unused()))
		if unmet(m, reserved) {
			u.Unmet = u.Seconds
		}
	} else {
		u.Seconds = 0
	}
	a.minute.Add(u)
	a.minute.Peak = max(a.minute.Peak, m.rate())
	if reserved > 0 && m.rate() >= reserved {
		a.full = now
	}
}

// lending is what all flows leave unused and borrow on each link, in bit/s. unreserved is the capacity that nothing
// reserves.
type lending struct{ unreserved, unused, borrowed []float64 }

func newLending(p plan) lending {
	n := len(p.capacities)
	l := lending{make([]float64, n), make([]float64, n), make([]float64, n)}
	for k, c := range p.capacities {
		l.unreserved[k] = float64(c)
	}
	for _, f := range p.flows {
		for _, k := range f.links {
			l.unreserved[k] -= float64(f.guarantee())
		}
	}
	for k, u := range l.unreserved {
		l.unreserved[k] = max(0, u)
	}
	return l
}

// begin begins an interval.
func (l lending) begin() {
	copy(l.unused, l.unreserved)
	clear(l.borrowed)
}

// add adds what a flow got.
func (l lending) add(f planned, delivered float64) {
	reserved := float64(f.guarantee())
	for _, k := range f.links {
		if delivered > reserved {
			l.borrowed[k] += delivered - reserved
		} else {
			l.unused[k] += reserved - delivered
		}
	}
}

// part returns the part of what a flow left unused that others used, on the link of its path where that was most. What is
// unused on a link, reserved or not, is borrowed alike, as in usage.
func (l lending) part(f planned) (most float64) {
	for _, k := range f.links {
		if l.borrowed[k] > 0 && l.unused[k] > 0 {
			most = max(most, min(1, l.borrowed[k]/l.unused[k]))
		}
	}
	return most
}

// guarantee returns the rate that is promised to the flow for its traffic: best effort and spare paths have none.
func (f planned) guarantee() unit.Rate {
	if f.class == share.BestEffort || len(f.spares) > 0 {
		return 0
	}
	return f.reserved
}
