package program

import (
	"fmt"
	"net/netip"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// Circuit is one direction of a reservation: traffic between two ports of hosts that is held to a rate at its first switch, and
// takes the paths that are reserved for it.
type Circuit struct {
	// Number identifies the circuit in all switches. It is 1 or higher, and stays while the circuit lasts.
	Number uint32
	// Name is for people.
	Name string
	// From and To are the ports at which the traffic enters and leaves the network.
	From, To fabric.PortID
	// VLAN is of the frames at both ports, 0 is those without a tag.
	VLAN uint16
	// Source and Destination have the addresses of the traffic. One that is not valid is any address. With none and no Flows
	// all frames to the hosts at To are meant, a circuit of layer 2.
	Source, Destination netip.Prefix
	// Flows are the parts of the traffic between the addresses; none is all of it.
	Flows []Traffic
	// Paths are one or several paths from the switch of From to that of To. Connections are divided among them equally. There is
	// none, or one without links, if both ports are at one switch.
	Paths []fabric.Path
	// Spare is the path that replaces one of Paths that fails, nil if there is none.
	Spare fabric.Path
	// Rate is the limit, in bit/s of layer 2. 0 is none: a host or a router limits the traffic.
	Rate unit.Rate
	// Unresponsive is traffic whose senders do not send less when packets are dropped, as UDP: its meter has a small burst. TCP needs a
	// larger one to come near its rate.
	Unresponsive bool
	// Class is 1 to 4, the first to be served first. Circuits of one class share a meter if a switch has too few.
	Class int
	// DSCP is set in the IP packets of the circuit, 1 to 63. 0 leaves it as it is.
	DSCP uint8
	// Waiting is a circuit without traffic: its first switch counts what comes of it, and sends that like traffic without a circuit.
	// It needs no meter and nothing on other switches. Where the first switch has too few tables for that the circuit does not wait.
	Waiting bool
	// Unreserved makes it all traffic without a circuit that the switch of From sends by port From to another switch. It has a Number,
	// a Name, From, a Rate and Unresponsive, and nothing else.
	Unreserved bool
	// Rest is traffic that takes its paths and is not reserved: it passes the meters of what is not reserved, as traffic without a circuit does. It has no Rate.
	Rest bool
}

// Traffic is packets of a protocol and between ports.
type Traffic struct {
	// Protocol is a number of IANA's registry, 0 is any.
	Protocol uint8
	// Source and Destination need the protocol 6, 17 or 132: TCP, UDP or SCTP.
	Source, Destination Ports
}

// Ports are a range of ports, both included. The zero value is any port.
type Ports struct{ First, Last uint16 }

func (p Ports) any() bool { return p == Ports{} }

// portFields are the match fields of ports, by protocol: source and destination.
var portFields = map[uint8][2]openflow.FieldID{
	6:   {openflow.FieldTCPSrc, openflow.FieldTCPDst},
	17:  {openflow.FieldUDPSrc, openflow.FieldUDPDst},
	132: {openflow.FieldSCTPSrc, openflow.FieldSCTPDst},
}

// maxMatches bounds the flows of a circuit at its first switch, chosen for Headgate: two ranges of ports that begin and end anywhere
// are 30 masks each, 900 flows.
const maxMatches = 1024

// Limit is what a circuit is held to.
type Limit struct {
	Rate         unit.Rate // in bit/s of layer 2
	Unresponsive bool      // as of a Circuit
}

// Limit returns what a circuit is held to until that is changed.
func (c *Circuit) Limit() Limit { return Limit{c.Rate, c.Unresponsive} }

// check reports what a circuit cannot have. Paths are checked against the network (live).
func (c *Circuit) check() error {
	switch {
	case c.Number == 0:
		return fmt.Errorf("circuit %s has no number: give it one from 1 on", c.Name)
	case c.Unreserved && c.Rate == 0:
		return fmt.Errorf("what is not reserved at port %v has no rate: give it one", c.From)
	case c.Unreserved:
		return nil
	case c.Rest && c.Rate > 0:
		return fmt.Errorf("it is not reserved, and has a rate of %v: leave the rate out", c.Rate)
	case c.From == c.To:
		return fmt.Errorf("it begins and ends at port %v: a circuit needs two ports", c.From)
	case c.VLAN > MaxHostVLAN:
		return fmt.Errorf("VLAN %d is of labels: use 1 to %d, or 0 for frames without a tag", c.VLAN, MaxHostVLAN)
	case c.DSCP > 63:
		return fmt.Errorf("DSCP %d is not 0 to 63", c.DSCP)
	case c.Source.IsValid() && c.Destination.IsValid() && c.Source.Addr().Is4() != c.Destination.Addr().Is4():
		return fmt.Errorf("%v and %v are of two families: use two circuits", c.Source, c.Destination)
	}
	for _, f := range c.Flows {
		switch _, has := portFields[f.Protocol]; {
		case !has && !(f.Source.any() && f.Destination.any()):
			return fmt.Errorf("ports of protocol %d cannot be matched by switches: leave them out, or use protocol 6, 17 or 132", f.Protocol)
		case f.Source.First > f.Source.Last || f.Destination.First > f.Destination.Last:
			return fmt.Errorf("a range of ports ends before it begins: %d to %d, %d to %d", f.Source.First, f.Source.Last, f.Destination.First, f.Destination.Last)
		}
	}
	return nil
}

// class is the packets of one flow of TableMeter.
type class struct {
	in         fabric.PortNo
	vlan       uint16
	mac        fabric.MAC // of the destination
	etherType  uint16     // 0 is any
	src, dst   netip.Prefix
	protocol   uint8
	ports      [2]portMask
	hasMasks   [2]bool
	remarkable bool // the packets have a DSCP
}

// portMask is the ports that have the bits of value under mask.
type portMask struct{ value, mask uint16 }

// masks divides a range into as few masks as possible: at most 30.
func (p Ports) masks() (all []portMask) {
	for at, end := uint32(p.First), uint32(p.Last)+1; at < end; {
		size := at & -at // the largest block that can begin here
		if at == 0 {
			size = 1 << 16
		}
		for at+size > end {
			size >>= 1
		}
		all = append(all, portMask{uint16(at), uint16(-size)})
		at += size
	}
	return all
}

// classes returns the flows of a circuit at its first switch, for the hosts that it is for. Those of one circuit do not overlap, but for
// frames without IP, which come last.
func (c *Circuit) classes(hosts []fabric.Host) (all []class, err error) {
	families := []uint16{etherIPv4, etherIPv6}
	for _, p := range []netip.Prefix{c.Source, c.Destination} {
		switch {
		case p.IsValid() && p.Addr().Is4():
			families = families[:1]
		case p.IsValid():
			families = []uint16{etherIPv6}
		}
	}
	flows := c.Flows
	everything := len(flows) == 0 && !c.Source.IsValid() && !c.Destination.IsValid()
	switch {
	case everything && c.DSCP == 0:
		families = nil
	case len(flows) == 0:
		flows = []Traffic{{}}
	}
	for _, h := range hosts {
		one := class{in: c.From.Port, vlan: c.VLAN, mac: h.MAC}
		for _, family := range families {
			one := one
			one.etherType, one.src, one.dst, one.remarkable = family, c.Source.Masked(), c.Destination.Masked(), true
			for _, f := range flows {
				one := one
				one.protocol = f.Protocol
				for _, src := range orAny(f.Source) {
					for _, dst := range orAny(f.Destination) {
						one.ports, one.hasMasks = [2]portMask{src, dst}, [2]bool{!f.Source.any(), !f.Destination.any()}
						all = append(all, one)
					}
				}
			}
		}
		if everything {
			all = append(all, one)
		}
		if len(all) > maxMatches {
			return nil, fmt.Errorf("its ranges of ports take more than %d flows at the switch: use ranges that begin and end at multiples of powers of two", maxMatches)
		}
	}
	return all, nil
}

func orAny(p Ports) []portMask {
	if p.any() {
		return []portMask{{}}
	}
	return p.masks()
}

// match returns the match of a class.
func (c *class) match() openflow.Match {
	m := atPort(c.in, openflow.EthDst(openflow.MAC(c.mac)), vlan(c.vlan))
	if c.etherType != 0 {
		m = append(m, openflow.EthType(c.etherType))
	}
	of := [2]func(netip.Prefix) openflow.Field{openflow.IPv4Src, openflow.IPv4Dst}
	if c.etherType == etherIPv6 {
		of = [2]func(netip.Prefix) openflow.Field{openflow.IPv6Src, openflow.IPv6Dst}
	}
	for n, p := range [2]netip.Prefix{c.src, c.dst} {
		if p.IsValid() && p.Bits() > 0 {
			m = append(m, of[n](p))
		}
	}
	if c.protocol != 0 {
		m = append(m, openflow.IPProto(c.protocol))
	}
	for n, p := range c.ports {
		if c.hasMasks[n] && p.mask != 0 {
			m = append(m, portField(portFields[c.protocol][n], p))
		}
	}
	return m
}

// portField matches ports under a mask. OpenFlow 1.3 has masks of ports in no version of its text (1.3.5, table 12); Open vSwitch takes
// them. A switch that does not refuses the flow, which is then the problem of the switch.
func portField(id openflow.FieldID, p portMask) openflow.Field {
	bytes := func(v uint16) []byte { return []byte{byte(v >> 8), byte(v)} }
	var mask []byte
	if p.mask != 0xffff {
		mask = bytes(p.mask)
	}
	f, err := openflow.NewField(id, bytes(p.value), mask)
	if err != nil {
		panic("program: a field of ports has two bytes: " + err.Error())
	}
	return f
}

// specifics is the greatest specific.
const specifics = 64 + 1 + 2 + 2*7

// specific is by how much the priority of a class is higher than that of all frames to a host: of two classes that overlap, the one with
// longer prefixes is first, and then the one with more ports.
func (c *class) specific() (n uint16) {
	bits := max(c.src.Bits(), 0) + max(c.dst.Bits(), 0)
	if c.etherType == etherIPv6 {
		bits /= 4
	}
	n = uint16(bits)
	if c.etherType != 0 {
		n++
	}
	if c.protocol != 0 {
		n += 2
	}
	for i := range c.ports {
		if c.hasMasks[i] {
			n += 7
		}
	}
	return n
}
