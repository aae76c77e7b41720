package fabric

import "time"

// EventKind says what happened.
type EventKind string

// Kinds of events of Diff. Moved is: a switch to another site, one end of a link to another port, a host to another
// port.
const (
	SwitchAdded   EventKind = "switch-added"
	SwitchRemoved EventKind = "switch-removed"
	SwitchChanged EventKind = "switch-changed"
	SwitchMoved   EventKind = "switch-moved"
	PortAdded     EventKind = "port-added"
	PortRemoved   EventKind = "port-removed"
	PortChanged   EventKind = "port-changed"
	LinkAdded     EventKind = "link-added" // of LinkLearner too
	LinkRemoved   EventKind = "link-removed"
	LinkChanged   EventKind = "link-changed"
	LinkMoved     EventKind = "link-moved"
	HostAdded     EventKind = "host-added" // of HostLearner too
	HostRemoved   EventKind = "host-removed"
	HostChanged   EventKind = "host-changed"
	HostMoved     EventKind = "host-moved"
)

// Kinds of events of LinkLearner.
const (
	LinkFaulty       EventKind = "link-faulty"        // a LinkFault began, with its text
	LinkFaultCleared EventKind = "link-fault-cleared" // it ended
)

// Kinds of events of HostLearner.
const (
	// HostElsewhere: a host that is known at one port was observed at another, Port. To ask the host at the old port
	// (by ARP or neighbour solicitation) decides whether it moved.
	HostElsewhere EventKind = "host-elsewhere"
	// HostStayed: it answered at the old port. Port sent with the MAC of a host that is elsewhere.
	HostStayed EventKind = "host-stayed"
	// AddressClaimed: Host uses an address that another host has.
	AddressClaimed EventKind = "address-claimed"
	// HostLimit: a host or an address is not learned, because a bound is reached.
	HostLimit EventKind = "host-limit"
)

// Event is one change or finding. Of Switch, Port, Link and Host those are set that the kind is about.
type Event struct {
	Time   time.Time // zero in events of Diff
	Kind   EventKind
	Switch DPID
	Port   PortID
	Link   LinkID
	Host   HostID
	// Text is a sentence without a full stop, for people.
	Text string
}
