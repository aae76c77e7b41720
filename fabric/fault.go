package fabric

// FaultKind says what is wrong.
type FaultKind string

// Kinds of faults of cables: they are not a link, or not the configured one.
const (
	// OneWay: frames pass in one direction, and not in the other.
	OneWay FaultKind = "one-way"
	// Looped: a port hears itself, or another port of its switch.
	Looped FaultKind = "looped"
	// Shared: a port hears two others, so that something between them copies frames: a hub or a foreign switch.
	Shared FaultKind = "shared"
	// Miswired: a port hears another one than the configuration says. The link is used if it is up.
	Miswired FaultKind = "miswired"
)

// Kinds of faults of switches.
const (
	// DuplicateID: a second switch with the datapath id of one that is connected tries to connect.
	DuplicateID FaultKind = "duplicate-id"
	// MissingPort: the configuration names a port that the switch does not have.
	MissingPort FaultKind = "missing-port"
	// WeakLink: measurements between hosts show that the link that leaves by the port gives less than its capacity, or that one of several does.
	WeakLink FaultKind = "weak-link"
	// MissingRelay: a relay agent at the port, which carries the connections of a reservation, is gone.
	MissingRelay FaultKind = "missing-relay"
)

// FaultKinds are all kinds of faults.
var FaultKinds = []FaultKind{OneWay, Looped, Shared, Miswired, DuplicateID, MissingPort, WeakLink, MissingRelay}

// Fault is a fault that there is now.
type Fault struct {
	Kind FaultKind
	// Port is the port that has it. Its number is 0 if the fault is of the switch, or of a port that is known by name only.
	Port PortID
	// Hears is the port that Port hears, zero if the fault is of no cable.
	Hears PortID
	// Text is a sentence with the remedy, without a full stop.
	Text string
}
