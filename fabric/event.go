package fabric

import (
	"strings"
	"time"
)

// EventKind says what happened.
type EventKind string

// Kinds of events of switches, links and hosts. A host moves to another port.
const (
	SwitchAdded   EventKind = "switch-added"
	SwitchRemoved EventKind = "switch-removed"
	SwitchChanged EventKind = "switch-changed"
	PortChanged   EventKind = "port-changed"
	LinkAdded     EventKind = "link-added"
	LinkRemoved   EventKind = "link-removed"
	HostAdded     EventKind = "host-added"
	HostRemoved   EventKind = "host-removed"
	HostChanged   EventKind = "host-changed"
	HostMoved     EventKind = "host-moved"
)

// Kinds of events of LinkLearner.
const (
	LinkFaulty       EventKind = "link-faulty"        // a Fault began, with its text
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

// SwitchRefused: a peer that connected as a switch was refused. It is of the controller that accepts switches.
const SwitchRefused EventKind = "switch-refused"

// Kinds of events of what switches can do, and of what they are protected from.
const (
	// SwitchLimited: the network lacks something at Switch, because of what the switch cannot do.
	SwitchLimited EventKind = "switch-limited"
	// PortLimited: Port sends more frames for the controller than it looks at, and the rest is dropped.
	PortLimited EventKind = "port-limited"
)

// CapacityChanged: a measured capacity of Link is in force, or no longer.
const CapacityChanged EventKind = "capacity-changed"

// RelayChanged: a relay agent at Host has announced itself, or is silent.
const RelayChanged EventKind = "relay-changed"

// EventKinds are all kinds of events.
var EventKinds = []EventKind{
	SwitchAdded, SwitchRemoved, SwitchChanged, SwitchRefused, SwitchLimited, PortChanged, PortLimited, LinkAdded, LinkRemoved, LinkFaulty, LinkFaultCleared,
	HostAdded, HostRemoved, HostChanged, HostMoved, HostElsewhere, HostStayed, HostLimit, AddressClaimed, RelayChanged, CapacityChanged,
}

// Is reports whether a kind is the one with this name, or one of those with this first word: "link" is of link-added.
func (k EventKind) Is(name string) bool {
	return string(k) == name || strings.HasPrefix(string(k), name+"-")
}

// Event is one change or finding. Of Switch, Port, Link and Host those are set that the kind is about.
type Event struct {
	Time   time.Time
	Kind   EventKind
	Switch DPID
	Port   PortID
	Link   LinkID
	Host   HostID
	// Text is a sentence without a full stop, for people.
	Text string
	// Count is how often it has happened since Time, and Last when it did last. They are zero for what happened once.
	Count int
	Last  time.Time
}

// Recent returns when the event happened last.
func (e Event) Recent() time.Time {
	if e.Last.IsZero() {
		return e.Time
	}
	return e.Last
}

// Repeats reports whether an event of the kind may happen again and again for one cause, without another in between that ends it. Such
// events of one cause are one, with a count.
func (k EventKind) Repeats() bool {
	switch k {
	case SwitchRefused, HostStayed, AddressClaimed, HostLimit, PortLimited:
		return true
	}
	return false
}

// About reports whether an event is about a switch, or a port or link of it.
func (e Event) About(id DPID) bool {
	return e.Switch == id || e.Port.Switch == id || e.Link.From.Switch == id || e.Link.To.Switch == id
}
