package program

import "headgate.dev/headgate/fabric/openflow"

// The tables of the pipeline, in the order in which packets pass them.
const (
	// TablePort divides what arrives: frames between switches have a label and go to TableLabel, those of hosts go to
	// TableSource. LLDP goes to the controller.
	TablePort openflow.TableID = iota
	// TableSource lets a host send from the port and with the addresses that it is known by. What is new goes to the
	// controller.
	TableSource
	// TableMeter is for reservations: a metered flow passes its meter.
	TableMeter
	// TableRedirect is for relays: a connection that a relay carries is sent to its agent.
	TableRedirect
	// TableDestination finds the switch of the destination, and puts the label of that switch on the frame.
	TableDestination
	// TableLabel sends a frame towards the switch that its label names, or takes the label off there.
	TableLabel
	// TableDeliver sends a frame to a host of this switch.
	TableDeliver
)

// Table describes a table of the pipeline.
type Table struct {
	ID   openflow.TableID
	Name string
	Does string
	// Rules are the kinds of rules in the table, the highest priority first.
	Rules []Rule
}

// Rule is a kind of rule.
type Rule struct {
	Priority uint16
	Kind     Kind
	Matches  string
	Actions  string
}

// Kind is the kind of a rule, which its cookie has.
type Kind uint8

// The kinds of rules.
const (
	KindDiscovery Kind = iota + 1
	KindLinkPort
	KindNoLabel
	KindHostPort
	KindAddress
	KindKnown
	KindUnknown
	KindNext
	KindLease
	KindLocal
	KindRemote
	KindFlood
	KindMiss
	KindHere
	KindDetour
	KindRerouted
	KindHairpin
	KindToward
	KindHost
)

// Pipeline is all tables. The rules are made from it, docs/fabric.md shows it, and the tests hold it against both.
var Pipeline = []Table{
	{TablePort, "port", "divides what arrives", []Rule{
		{3000, KindDiscovery, "LLDP", "to the controller"},
		{2000, KindLinkPort, "a port with a link, with a label", "go to label"},
		{1500, KindNoLabel, "another port, with a VLAN that labels use", "drop"},
		{1000, KindHostPort, "a port of hosts", "go to source"},
	}},
	{TableSource, "source", "lets hosts send", []Rule{
		{4000, KindAddress, "ARP, neighbour solicitations and advertisements", "to the controller"},
		{3000, KindKnown, "port, MAC and VLAN of a known host", "go to meter"},
		{1000, KindUnknown, "everything else", "to the controller"},
	}},
	{TableMeter, "meter", "holds reservations to their rates", []Rule{{0, KindNext, "everything else", "go to redirect"}}},
	{TableRedirect, "redirect", "sends connections to relays", []Rule{
		{1000, KindLease, "answers of DHCP servers", "a copy to the controller, go to destination"},
		{0, KindNext, "everything else", "go to destination"},
	}},
	{TableDestination, "destination", "finds the destination's switch", []Rule{
		{3000, KindLocal, "MAC and VLAN of a host of this switch", "go to deliver"},
		{2000, KindRemote, "MAC and VLAN of a host of another switch", "push the label of its switch, to the group of that switch"},
		{1000, KindFlood, "broadcast and multicast", "to the group of all ports of hosts and of the tree"},
		{0, KindMiss, "everything else", "to the controller"},
	}},
	{TableLabel, "label", "carries frames between switches", []Rule{
		{5000, KindHere, "the label of this switch", "pop the label, go to deliver"},
		{4000, KindFlood, "the label of broadcast, from a port of the tree", "to the group of all ports of hosts and of the tree"},
		{3000, KindDetour, "the label of a switch, rerouted, from the port that leads there", "by the detour"},
		{2000, KindRerouted, "the label of a switch, rerouted", "by the port that leads there"},
		{1500, KindHairpin, "the label of a switch, from the port of the backup", "to the group of the switch that sends back"},
		{1000, KindToward, "the label of a switch", "to the group of the switch"},
	}},
	{TableDeliver, "deliver", "hands frames to hosts", []Rule{
		{1000, KindHost, "MAC and VLAN of a host of this switch", "out of its port"},
	}},
}

// priority returns the priority of a kind of rule in a table. It panics if the pipeline does not have it, which is a mistake of
// the program that asks.
func priority(t openflow.TableID, k Kind) uint16 {
	for _, r := range Pipeline[t].Rules {
		if r.Kind == k {
			return r.Priority
		}
	}
	panic("program: the pipeline has no such rule")
}

// cookiePrefix marks flows of Headgate: "HG". cookieMask is its place.
const (
	cookiePrefix = uint64(0x4847) << 48
	cookieMask   = uint64(0xffff) << 48
)

// cookie returns the cookie of a rule, from which a reader of a switch's flows knows the kind and what it is for.
func cookie(k Kind, about uint32) uint64 {
	return cookiePrefix | uint64(k)<<40 | uint64(about)
}

// KindOf returns the kind of the rule that a flow's cookie names; ok is false for a flow that is not Headgate's.
func KindOf(cookie uint64) (k Kind, ok bool) {
	return Kind(cookie >> 40), cookie&cookieMask == cookiePrefix
}

// The numbers of Headgate's groups and meters. Other programs may use the rest.
const (
	firstGroup, lastGroup openflow.GroupID = 0x48470000, 0x4847ffff
	firstMeter, lastMeter openflow.MeterID = 1, 0xffff
)

// Managed is what Headgate manages in a switch.
var Managed = Ours{
	Cookie: cookiePrefix, CookieMask: cookieMask,
	Groups: [2]openflow.GroupID{firstGroup, lastGroup}, Meters: [2]openflow.MeterID{firstMeter, lastMeter},
}
