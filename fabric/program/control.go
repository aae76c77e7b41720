package program

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// What a port sends to the controller is bounded at the switch, so that a host that floods it slows no other port. The bound is
// of a port and not of a switch: with one meter for all ports the port that floods would take what the others need.
//
// With meters, each rule that sends to the controller stands again for each port, with a meter of the port and a priority that is
// higher by one. Without, the controller bounds what it looks at, and closes the way for a time (Quiet).

// Class is a class of frames for the controller. Each has a bound of its own: a host that sends much to one that does not exist
// can still ask for the addresses of others.
type Class uint8

// The classes.
const (
	Questions Class = iota // ARP, neighbour discovery, LLDP, and answers to the controller
	Unknown                // frames from and to unknown hosts, and those of DHCP servers
	Classes                // how many there are
)

// String describes the frames of a class.
func (c Class) String() string {
	if c == Questions {
		return "frames of ARP, neighbour discovery or LLDP"
	}
	return "frames from or to unknown hosts"
}

// Class returns the class of the frames that a kind of rule sends to the controller.
func (k Kind) Class() Class {
	if k == KindDiscovery || k == KindAddress || k == KindAsker {
		return Questions
	}
	return Unknown
}

// The bounds of a port and a class in packets per second, and in packets, chosen for Headgate. They are above those of package
// live, which drops the rest: so it knows which port exceeds them, and others get what they need of 20,000 packets/s.
const askRate, askBurst = 250, 400

// perPort is by how much the priority of a flow of one port is higher, at most.
const perPort = 2

// controlRule is a rule that sends frames to the controller.
type controlRule struct {
	Flow
	anyPort bool // of ports without hosts, too
}

// controlRules returns the rules that send frames to the controller.
func controlRules(flat bool) []controlRule {
	var all []controlRule
	add := func(t openflow.TableID, k Kind, about uint32, m openflow.Match, why string, do ...openflow.Instruction) {
		all = append(all, controlRule{Flow: newFlow(flat, t, k, about, m, why, append([]openflow.Instruction{apply(toController())}, do...)...)})
	}
	all = append(all, controlRule{Discovery(0), true})
	add(TableSource, KindAddress, 1, openflow.Match{openflow.EthType(etherARP)}, "answer ARP")
	for _, kind := range []uint8{solicitation, advertisement} {
		add(TableSource, KindAddress, uint32(kind), openflow.Match{openflow.EthType(etherIPv6), openflow.IPProto(protocolICMPv6), openflow.ICMPv6Type(kind)}, "answer neighbour discovery")
	}
	var unknown openflow.Match
	if flat {
		unknown = openflow.Match{toGroup()}
	} else {
		add(TableRedirect, KindLease, 0, openflow.Match{openflow.EthType(etherIPv4), openflow.IPProto(protocolUDP), openflow.UDPSrc(portBOOTPS)}, "see leases of addresses", next(TableDestination))
		add(TableDestination, KindAsker, 0, openflow.Match{openflow.EthDst(Asker)}, "see answers of hosts")
	}
	add(TableSource, KindUnknown, 0, unknown, "learn hosts")
	add(TableDestination, KindMiss, 0, nil, "ask for a host that this switch does not know")
	return all
}

// atPort returns the flow for one port, above the one for all.
func (f Flow) atPort(p fabric.PortNo, above uint16) Flow {
	f.Match = atPort(p, f.Match...)
	f.Priority += above
	f.Why += fmt.Sprintf(" at port %v", p)
	return f
}

// controls adds the rules that send frames to the controller, and the meters of the ports.
func (b *builder) controls() {
	metered := map[openflow.MeterID]bool{}
	meter := func(f Flow, p fabric.PortNo) {
		k, _ := KindOf(f.Cookie)
		id := portMeter(p, k.Class())
		if !metered[id] {
			metered[id] = true
			b.Meters = append(b.Meters, Meter{
				ID: id, Flags: openflow.MeterPktps | openflow.MeterBurst, Bands: []openflow.Band{openflow.DropBand{BandLimit: openflow.BandLimit{Rate: askRate, Burst: askBurst}}},
				Why: fmt.Sprintf("bound the %v that port %v sends to the controller", k.Class(), p),
			})
		}
		f = f.atPort(p, 1)
		f.Instructions = append(openflow.Instructions{openflow.Meter{Meter: id}}, f.Instructions...)
		b.Flows = append(b.Flows, f)
	}
	hosts := b.hostPorts()
	for _, r := range controlRules(b.form.flat) {
		b.Flows = append(b.Flows, r.Flow)
		if !b.form.meters {
			continue
		}
		for _, p := range b.at.Ports {
			if r.anyPort && p.No <= fabric.PortNo(openflow.PortMax) || slices.Contains(hosts, p.No) {
				meter(r.Flow, p.No)
			}
		}
	}
}

// portMeter returns the number of the meter of a port for a class. Ports with numbers above 16,383 share one.
func portMeter(p fabric.PortNo, c Class) openflow.MeterID {
	const ports = (lastMeter + 1 - firstPortMeter) / openflow.MeterID(Classes)
	id := firstPortMeter + openflow.MeterID(c)*ports
	if openflow.MeterID(p) < ports {
		id += openflow.MeterID(p)
	}
	return id
}

// Quiet returns flows by which a switch sends no frames of a class from a port to its controller for some seconds. They are in no
// program, and end by themselves; what needs no controller passes as before.
func Quiet(can fabric.Capabilities, p fabric.PortNo, c Class, seconds uint16) (all []Flow) {
	for _, r := range controlRules(formOf(can).flat) {
		if k, _ := KindOf(r.Cookie); k.Class() != c {
			continue
		}
		f := r.atPort(p, perPort)
		f.Cookie, f.HardTimeout = cookie(KindQuiet, uint32(p)), seconds
		f.Instructions = slices.DeleteFunc(slices.Clone(f.Instructions), func(i openflow.Instruction) bool { return i.Type() == openflow.InstructionApplyActions })
		all = append(all, f)
	}
	return all
}
