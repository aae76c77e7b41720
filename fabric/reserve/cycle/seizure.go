package cycle

import "headgate.dev/headgate/unit"

const (
	// falseCycles is the time in which bandwidth that was seized and returned counts as a false seizure (reservations,
	// section 3.3: "hand it back within the next few cycles"; the number is the requirement's).
	falseCycles = 3
	// leastSeizure is the least part of a reservation whose loss counts: 1 %, twice the quantum of limits.
	leastSeizure = 100
)

// Seizures are how often bandwidth of reservations was seized, and how often falsely: more than half of it was returned
// within three cycles. A flow that really stops and begins again in that time counts as well.
type Seizures struct{ Seized, False uint64 }

// seizer counts the seizures of one flow from its limits, whatever the scheme.
type seizer struct {
	Seizures
	held, from, to unit.Rate
	age            int // cycles since the latest seizure
	open           bool
}

// take takes the limit of the next cycle. Loans are not the flow's, so only what it holds of its reservation counts.
func (s *seizer) take(limit, reserved unit.Rate) {
	now := min(limit, reserved)
	s.age++
	if s.open && (s.age > falseCycles || now > s.to+(s.from-s.to)/2) {
		if s.age <= falseCycles {
			s.False++
		}
		s.open = false
	}
	if now < s.held && s.held-now > reserved/leastSeizure {
		s.Seized++
		s.from, s.to, s.age, s.open = s.held, now, 0, true
	}
	s.held = now
}
