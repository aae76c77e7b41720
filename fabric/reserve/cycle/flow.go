package cycle

import (
	"strconv"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// FlowID identifies the traffic that one limit holds: one direction of one path of a reservation, or best effort.
type FlowID struct {
	// Reservation and Path, an index of reserve.Reservation.Paths, are of reserved traffic. Reverse is the direction from
	// Destination to Source.
	Reservation reserve.ID
	Path        int
	Reverse     bool
	// Port is that of best effort: where it enters the network, or the port at the beginning of the link by which it
	// leaves a switch or router (Leaves). It is the zero PortID for reserved traffic.
	Port   fabric.PortID
	Leaves bool
}

// BestEffort reports whether the traffic has no reservation.
func (f FlowID) BestEffort() bool { return f.Port != fabric.PortID{} }

// String prints physics/run-7 path 1 forward, or best effort that enters at 0000000000000001/3.
func (f FlowID) String() string {
	switch {
	case f.BestEffort() && f.Leaves:
		return "best effort that leaves by " + f.Port.String()
	case f.BestEffort():
		return "best effort that enters at " + f.Port.String()
	}
	direction := "forward"
	if f.Reverse {
		direction = "reverse"
	}
	return f.Reservation.String() + " path " + strconv.Itoa(f.Path+1) + " " + direction
}

// key is the key of share.ReservedFlow. Names have no byte 0, so that keys of different flows differ.
func (f FlowID) key() string {
	if f.BestEffort() {
		return f.String()
	}
	k := f.Reservation.Tenant + "\x00" + f.Reservation.Name + "\x00" + strconv.Itoa(f.Path)
	if f.Reverse {
		k += "r"
	}
	return k
}

// Aggregate is best-effort traffic that one meter or default group limits.
type Aggregate struct {
	Port   fabric.PortID
	Leaves bool
	Point  Point
	// Links are those that all of it may cross, among them reserve.Uplink and reserve.Downlink.
	Links []fabric.LinkID
}

func (a Aggregate) id() FlowID { return FlowID{Port: a.Port, Leaves: a.Leaves} }

// Limit is the rate to which a point holds a flow: share.Unlimited is no limit.
type Limit struct {
	Flow  FlowID
	Point Point
	Rate  unit.Rate
}
