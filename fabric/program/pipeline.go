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
	KindTree
	KindClosed
	KindReflect
	KindNeighbour
	KindAsker
	KindCircuit
	KindPinned
	KindCarry
	KindArrive

	// KindQuiet and those above it are of flows that are in no program, and end by themselves (Quiet).
	KindQuiet Kind = 0x80
	// KindWatch, KindBypass, KindRelayed and KindReset are of redirection (redirect.go).
	KindWatch   Kind = 0x81
	KindBypass  Kind = 0x82
	KindRelayed Kind = 0x83
	KindReset   Kind = 0x84
)

// Pipeline is all tables. The rules are made from it, docs/fabric.md shows it, and the tests hold it against both.
var Pipeline = []Table{
	{TablePort, "port", "divides what arrives", []Rule{
		{3500, KindReflect, "LLDP to the address of reflection", "back to where it came from, with the address of LLDP"},
		{3000, KindDiscovery, "LLDP", "to the controller"},
		{2000, KindLinkPort, "a port with a link, with a label", "go to label"},
		{1500, KindNoLabel, "another port, with a VLAN that labels use", "drop"},
		{1000, KindHostPort, "a port of hosts", "go to source"},
	}},
	{TableSource, "source", "lets hosts send", []Rule{
		{4500, KindNeighbour, "unicast ARP, neighbour solicitation or advertisement, with port, MAC, VLAN and address of a known host as its sender", "go to destination"},
		{4000, KindAddress, "ARP, neighbour solicitations and advertisements", "to the controller"},
		{3000, KindKnown, "port, MAC and VLAN of a known host", "go to meter"},
		{1000, KindUnknown, "everything else", "to the controller"},
	}},
	{TableMeter, "meter", "holds reservations to their rates", []Rule{
		{1000, KindCircuit, "port, VLAN, destination's MAC and traffic of a circuit; the more specific, the higher by up to 81", "through its meter, set the DSCP where asked, write the circuit's number into the metadata, go to redirect"},
		{0, KindNext, "everything else", "go to redirect"},
	}},
	{TableRedirect, "redirect", "sends connections to relays", []Rule{
		{3500, KindRelayed, "port, VLAN, addresses and ports of a TCP connection that relay agents carry", "set MACs, clear the metadata, go to destination"},
		{3450, KindReset, "port, VLAN, addresses and ports of a TCP connection whose relay agent is gone", "to the controller"},
		{3200, KindBypass, "a port whose hosts begin too many TCP connections, SYN without ACK", "go to destination"},
		{3000, KindWatch, "addresses and ports of a redirection, SYN without ACK", "to the controller"},
		{1000, KindLease, "answers of DHCP servers", "a copy to the controller, go to destination"},
		{0, KindNext, "everything else", "go to destination"},
	}},
	{TableDestination, "destination", "finds the destination's switch", []Rule{
		{4000, KindAsker, "the MAC with which the controller asks hosts", "to the controller"},
		{3500, KindPinned, "metadata with the number of a circuit", "push the label of its path, out of the port of that, by a group"},
		{3000, KindLocal, "MAC and VLAN of a host of this switch", "go to deliver"},
		{2000, KindRemote, "MAC and VLAN of a host of another switch", "push the label of its switch, to the group of that switch"},
		{1000, KindFlood, "broadcast and multicast", "to the group of all ports of hosts and of the tree"},
		{0, KindMiss, "everything else", "to the controller"},
	}},
	{TableLabel, "label", "carries frames between switches", []Rule{
		{5000, KindHere, "the label of this switch", "pop the label, go to deliver"},
		{4600, KindArrive, "the label of a path that ends here, from its port", "pop the label, go to deliver"},
		{4500, KindCarry, "the label of a path, from its port", "out of the next port of the path, by a group"},
		{4000, KindTree, "the label of broadcast, from a port of the tree", "to the group of all ports of hosts and of the tree"},
		{3000, KindDetour, "the label of a switch, rerouted, from the port that leads there", "by the detour"},
		{2000, KindRerouted, "the label of a switch, rerouted", "by the port that leads there"},
		{1500, KindHairpin, "the label of a switch, from the port of the backup", "to the group of the switch that sends back"},
		{1000, KindToward, "the label of a switch", "to the group of the switch"},
	}},
	{TableDeliver, "deliver", "hands frames to hosts", []Rule{
		{1000, KindHost, "MAC and VLAN of a host of this switch", "out of its port"},
	}},
}

// rule returns the rule of a kind.
func (t Table) rule(k Kind) (Rule, bool) {
	for _, r := range t.Rules {
		if r.Kind == k {
			return r, true
		}
	}
	return Rule{}, false
}

// newFlow returns a flow of a kind of rule, in the table t of the pipeline or in that of the flattened form. about is a number
// for its cookie. It panics if the pipeline does not have the rule, which is a mistake of the program that asks.
func newFlow(flat bool, t openflow.TableID, k Kind, about uint32, m openflow.Match, why string, do ...openflow.Instruction) Flow {
	in := Pipeline[t]
	if flat {
		in = Flat
	}
	r, ok := in.rule(k)
	if !ok {
		panic("program: the pipeline has no such rule")
	}
	return Flow{Table: in.ID, Priority: r.Priority, Match: m, Cookie: cookie(k, about), Instructions: do, Why: why}
}

// cookiePrefix marks flows of Headgate: "HG". cookieMask is its place, and programMask is that of what marks flows of a program:
// their kinds are below KindQuiet.
const (
	cookiePrefix = uint64(0x4847) << 48
	cookieMask   = uint64(0xffff) << 48
	programMask  = cookieMask | uint64(KindQuiet)<<40
)

// cookie returns the cookie of a rule, from which a reader of a switch's flows knows the kind and what it is for.
func cookie(k Kind, about uint32) uint64 {
	return cookiePrefix | uint64(k)<<40 | uint64(about)
}

// KindOf returns the kind of the rule that a flow's cookie names; ok is false for a flow that is not Headgate's.
func KindOf(cookie uint64) (k Kind, ok bool) {
	return Kind(cookie >> 40), cookie&cookieMask == cookiePrefix
}

// OfKind returns the cookie and its mask of the flows of a kind.
func OfKind(k Kind) (value, mask uint64) { return cookie(k, 0), cookieMask | uint64(0xff)<<40 }

// RuleOf returns the rule that a flow with a cookie is of, in a table of the pipeline or of its flattened form; ok is false for a
// flow that is not Headgate's.
func RuleOf(table openflow.TableID, cookie uint64) (t Table, r Rule, ok bool) {
	kind, ours := KindOf(cookie)
	if !ours || int(table) >= len(Pipeline) {
		return t, r, false
	}
	t = Pipeline[table]
	if kind == KindQuiet {
		return t, Rule{Kind: kind, Matches: "a port that floods the controller", Actions: "as without this rule, but not to the controller"}, true
	}
	if r, ok = t.rule(kind); !ok && table == Flat.ID {
		t = Flat
		r, ok = t.rule(kind)
	}
	return t, r, ok
}

// The numbers of Headgate's groups and meters. Other programs may use the rest.
const (
	firstGroup, lastGroup openflow.GroupID = 0x48470000, 0x4847ffff
	firstMeter, lastMeter openflow.MeterID = 1, 0xffff
	// firstPortMeter is the first of the meters for what ports send to the controller (control.go). Those below are for
	// reservations.
	firstPortMeter openflow.MeterID = 0x8000
)

// Managed is what Headgate manages in a switch.
var Managed = Ours{
	Cookie: cookiePrefix, CookieMask: programMask,
	Groups: [2]openflow.GroupID{firstGroup, lastGroup}, Meters: [2]openflow.MeterID{firstMeter, lastMeter},
}
