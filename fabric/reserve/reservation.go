package reserve

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Path is one path of a reservation. Both directions take the same cables.
type Path struct {
	// Links are those from Source to Destination, none if both are at one switch.
	Links fabric.Path
	// Forward and Reverse are reserved on each link and on its reverse.
	Forward, Reverse unit.Rate
	// Spare reports that traffic takes the path only when another one fails.
	Spare bool
}

// State says how a reservation is at one moment.
type State uint8

const (
	// Scheduled: the reservation has not begun.
	Scheduled State = iota
	// Active: all that was asked for is reserved.
	Active
	// Degraded: less is reserved than was asked for, now or when the reservation begins.
	Degraded
	// Ended: nothing is reserved, and the reservation is kept for the grace of Expire.
	Ended
)

// String prints scheduled, active, degraded or ended.
func (s State) String() string {
	switch s {
	case Scheduled:
		return "scheduled"
	case Active:
		return "active"
	case Degraded:
		return "degraded"
	}
	return "ended"
}

// Reservation is what is granted. Slices must not be modified.
type Reservation struct {
	Request Request
	// Paths are those that are reserved: the spare path, if any, is the last. The others have Forward and Reverse
	// together, or less if the reservation is degraded.
	Paths []Path
	// Forward and Reverse are the rates that are promised: those of Request, or those that follow from its Volume.
	Forward, Reverse unit.Rate
	// Start is the first moment (ST of equation 3.1), and End the first after the last. Bandwidth is reserved in
	// [Start, End).
	Start, End time.Time
	// Since is from when Paths hold: Start, or the time of the last change after it.
	Since time.Time
	// Degraded says why less is reserved than is promised. It is empty if nothing is lacking.
	Degraded string
	// Generation is 1 at first, and grows with each change.
	Generation uint64
}

// State returns the state at a moment.
func (r Reservation) State(now time.Time) State {
	switch {
	case !now.Before(r.End):
		return Ended
	case r.Degraded != "":
		return Degraded
	case now.Before(r.Start):
		return Scheduled
	}
	return Active
}

// Rates returns what is reserved in both directions, without the spare path.
func (r Reservation) Rates() (forward, reverse unit.Rate) { return total(r.Paths) }

func total(paths []Path) (forward, reverse unit.Rate) {
	for _, p := range paths {
		if !p.Spare {
			forward, reverse = forward+p.Forward, reverse+p.Reverse
		}
	}
	return forward, reverse
}
