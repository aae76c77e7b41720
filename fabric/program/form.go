package program

import (
	"fmt"
	"math"

	"headgate.dev/headgate/fabric"
)

// form is how a switch gets the pipeline.
type form struct {
	flat    bool // all rules are in one table
	backup  int  // how many fast-failover groups there can be
	groups  bool // broadcast is sent by groups, and not by lists of outputs
	meters  bool // what ports send to the controller is metered
	senders bool // hosts confirm neighbours without the controller
	flags   bool // the first segments of TCP connections can be told from others
}

// formOf returns the form for what a switch can do. A switch that was not asked gets the whole pipeline without meters.
func formOf(c fabric.Capabilities) form {
	if c.Tables == 0 {
		return form{backup: math.MaxInt, groups: true, senders: true, flags: true}
	}
	f := form{
		flat: c.Tables < len(Pipeline), backup: c.FastFailover, groups: c.All >= floodGroups,
		meters: c.PacketMeters && c.Meters >= needMeters, senders: c.Senders, flags: c.TCPFlags,
	}
	if f.groups { // a switch can have one limit for the groups of all types
		f.backup = max(f.backup-floodGroups, 0)
	}
	return f
}

// protects reports whether frames with a label have a backup: it is two groups, and those of lower labels come first. Which labels
// have one does not depend on the network, so that groups that come and groups that end are together not too many.
func (f form) protects(label uint16) bool { return int(label-firstLabel) < f.backup/2 }

// floodGroups is how many groups of type all a switch has.
const floodGroups = 2

// needMeters is how many meters a switch must have: for 64 ports, which is more than any switch of one unit has, and as many for
// reservations.
const needMeters = 2 * 64 * int(Classes)

// manyFlows is from how many flows on a table is not mentioned: 1,000 switches and 1,000 hosts.
const manyFlows = 4096

// Lost returns what a network lacks at a switch because of what the switch cannot do: sentences without a full stop, none for
// one that can do everything.
func Lost(c fabric.Capabilities) (all []string) {
	f := formOf(c)
	add := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	if f.flat {
		tables := fmt.Sprintf("With %d of %d tables", c.Tables, len(Pipeline))
		add("%s, all rules are in one. A host can use the source address of another in frames to hosts that are known: only ARP, neighbour discovery, broadcast and multicast are checked", tables)
		add("%s, a host is found when it sends one of these or to an unknown address, and a move when it sends one of these. Leases of DHCP are not read", tables)
		add("%s, a bridge that joins two host ports and does not pass LLDP on can make frames circulate", tables)
		add("%s, connections cannot be redirected to relays", tables)
	}
	if f.flat || c.Tables > 0 && !f.senders {
		why := "Without matches on the senders of ARP and neighbour discovery"
		if f.flat {
			why = fmt.Sprintf("With %d of %d tables", c.Tables, len(Pipeline))
		}
		add("%s, hosts there confirm the addresses of others by the controller: without one, their connections end within a minute", why)
	}
	if !f.flat && !f.flags {
		add("Without matches on the flags of TCP, connections that hosts there begin are not redirected to relays")
	}
	switch need := 2 * MaxSwitches; {
	case f.backup/2 == 0:
		add("Without fast-failover groups, frames to a port that goes down are lost until the controller has changed the rules")
	case f.backup < need:
		add("With %d fast-failover groups, frames to %d switches have a backup port: those to the rest, and those of circuits, are lost from the time a port goes down until the controller has changed the rules", c.FastFailover, f.backup/2)
	}
	if c.Tables > 0 && c.Select == 0 {
		add("Without select groups, a reservation with several paths that begins there uses one of them")
	}
	switch {
	case c.Tables == 0:
	case c.Meters == 0:
		add("Without meters, a reservation that begins there has no limit, and a port that floods the controller slows the other ports of the switch for a second, until a rule drops what it sends")
	case !f.meters:
		add("Without %d meters that count packets, a port that floods the controller slows the other ports of the switch for a second, until a rule drops what it sends", needMeters)
	}
	if 0 < c.Entries && c.Entries < manyFlows {
		add("With %d flows in a table, not all hosts and switches of a large network are reached", c.Entries)
	}
	return all
}
