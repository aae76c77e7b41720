package group

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Packet is what rules can see of one packet. The zero values of VLAN and Mark
// mean none.
type Packet struct {
	// Link names what is not IP: "arp", "lldp", "stp" or an EtherType. It is
	// empty for IP, and then the addresses are valid and of one version.
	Link     string
	Proto    uint8
	Src, Dst netip.Addr
	// SPort and DPort count for TCP, UDP and SCTP.
	SPort, DPort uint16
	// Fragment is a part of a datagram other than its first, which has no ports.
	// In the kernel it goes where the first part went; this is what happens to it
	// if that was not seen.
	Fragment bool
	// PureAck is a TCP segment with nothing but an acknowledgement.
	PureAck bool
	// ICMPType is the type of an ICMP message.
	ICMPType uint8
	// TTL is the IPv4 TTL or the hop limit, and Length the bytes of the IP packet with
	// its header; 0 is what the protocol has. Only Control asks.
	TTL    uint8
	Length uint16
	DSCP   uint8
	VLAN   uint16
	// PCP is the outermost tag's priority, which counts if there is a tag: with a
	// VLAN's id, or, if PriorityTag is set, without one.
	PCP         uint8
	PriorityTag bool
	Mark        uint32
	// SMAC is the source MAC address; all zero on a device that has none.
	SMAC [6]byte
	// Cgroup is the path of the socket's cgroup, or empty if unknown.
	Cgroup string
}

// Tagged tells whether the packet has an 802.1Q tag.
func (p Packet) Tagged() bool { return p.VLAN > 0 || p.PriorityTag }

// HasPorts tells whether the packet has ports to match.
func (p Packet) HasPorts() bool { return p.Link == "" && !p.Fragment && hasPorts(p.Proto) }

func hasPorts(proto uint8) bool { return proto == TCP || proto == UDP || proto == SCTP }

// Control tells whether the packet is of the kinds that go ahead of all others,
// within a budget of the group that its rules give, because a link without them does
// not work: ARP, LLDP, STP, LACP and EAPOL, neighbour discovery (RFC 4861), multicast
// membership (IGMP, MLD), DHCP between its own ports, and pure TCP acknowledgements.
// It is bpf/control.h in words; the message itself is taken to be as its protocol
// has it.
func (p Packet) Control() bool {
	switch {
	case p.Link != "":
		return slices.Contains(controlLinks, p.Link)
	case p.Fragment:
		return false
	case p.Proto == TCP:
		return p.PureAck
	case p.Proto == UDP && p.Src.Is4():
		return dhcpPorts(p.SPort, p.DPort, 68, 67) && p.long(20+8+240, 20+8) && (!p.Src.IsUnspecified() || p.Dst == broadcast)
	case p.Proto == UDP:
		return dhcpPorts(p.SPort, p.DPort, 546, 547) && p.long(40+8+4, 40+8)
	case p.Proto == igmp && p.Src.Is4():
		return p.hops(1) && p.Dst.IsMulticast() && p.long(20+8, 20)
	case p.Proto == ICMPv6 && p.Src.Is6():
		return p.neighbours() || p.memberships()
	}
	return false
}

const igmp = 2

var (
	controlLinks = []string{"arp", "lldp", "stp", "lacp", "eapol"}
	broadcast    = netip.AddrFrom4([4]byte{255, 255, 255, 255})
)

// mostMessage is the longest control message, without the headers before it
// (MOST_MESSAGE in bpf/control.h).
const mostMessage = 576

// long tells whether the packet's length can be that of a message with so many bytes
// of headers.
func (p Packet) long(least, headers uint16) bool {
	return p.Length == 0 || p.Length >= least && p.Length <= headers+mostMessage
}

func (p Packet) hops(n uint8) bool { return p.TTL == 0 || p.TTL == n }

// neighbours tells whether it is neighbour discovery.
func (p Packet) neighbours() bool {
	least := map[uint8]uint16{133: 8, 134: 16, 135: 24, 136: 24, 137: 40}[p.ICMPType]
	return least > 0 && p.hops(255) && p.long(40+least, 40)
}

// memberships tells whether it is MLD, which has eight bytes of options.
func (p Packet) memberships() bool {
	least := map[uint8]uint16{130: 24, 131: 24, 132: 24, 143: 8}[p.ICMPType]
	return least > 0 && p.hops(1) && p.Dst.IsMulticast() && (p.Src.IsLinkLocalUnicast() || p.Src.IsUnspecified()) && p.long(48+least, 48)
}

// dhcpPorts are from a client, from a server, or between relays.
func dhcpPorts(s, d, client, server uint16) bool {
	return s == client && d == server || s == server && (d == client || d == server)
}

func (p Packet) String() string {
	if p.Link != "" {
		return strings.Join(append([]string{p.Link}, p.extras()...), " ")
	}
	src, dst := p.Src.String(), p.Dst.String()
	if p.HasPorts() {
		src, dst = netip.AddrPortFrom(p.Src, p.SPort).String(), netip.AddrPortFrom(p.Dst, p.DPort).String()
	}
	proto := ProtoName(p.Proto)
	if p.Proto == ICMPv6 && p.Src.Is6() {
		proto = "icmp"
	} else if p.Proto == ICMP && p.Src.Is6() {
		proto = strconv.Itoa(ICMP)
	}
	return strings.Join(append([]string{proto, src, dst}, p.extras()...), " ")
}

func (p Packet) extras() (out []string) {
	add := func(given bool, format string, args ...any) {
		if given {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(p.Fragment, "fragment")
	add(p.PureAck, "ack")
	add(p.ICMPType > 0, "type %d", p.ICMPType)
	add(p.TTL > 0, "ttl %d", p.TTL)
	add(p.Length > 0, "length %d", p.Length)
	add(p.DSCP > 0, "dscp %s", DSCPName(p.DSCP))
	add(p.VLAN > 0, "vlan %d", p.VLAN)
	add(p.PriorityTag || p.VLAN > 0 && p.PCP > 0, "pcp %d", p.PCP)
	add(p.Mark > 0, "mark %d", p.Mark)
	add(p.SMAC != [6]byte{}, "smac %v", net.HardwareAddr(p.SMAC[:]))
	add(p.Cgroup != "", "cgroup %s", p.Cgroup)
	return out
}

// ParsePacket reads "tcp 10.0.0.1:443 10.0.0.2:55000 dscp cs1 mark 7": protocol,
// source and destination, and then, in any order, dscp, vlan, pcp, mark, smac, cgroup,
// ttl, length and (ICMP) type with their values, and the words ack (a TCP segment with
// nothing else) and fragment (a part other than the first, so without ports). What is
// not IP has a name alone: "arp", "lldp", "stp", "lacp" or "eapol". Packet.String
// prints the same.
func ParsePacket(s string) (Packet, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Packet{}, fmt.Errorf("the packet is empty: %s", packetForm)
	}
	var p Packet
	switch first := strings.ToLower(words[0]); first {
	case "arp", "lldp", "stp", "lacp", "eapol":
		p.Link = first
		return p, p.parseExtras(words[1:])
	}
	if len(words) < 3 {
		return p, fmt.Errorf("%q is not a packet: %s", s, packetForm)
	}
	var options []string
	if len(words) > 3 {
		options = words[3:]
	}
	if err := p.parseExtras(options); err != nil {
		return p, err
	}
	return p, p.parseEnds(words[0], words[1], words[2])
}

// ParseConn reads "tcp 10.0.0.1:443 10.0.0.2:55000": a protocol with ports and
// the two ends of a connection.
func ParseConn(s string) (proto uint8, a, b netip.AddrPort, err error) {
	words := strings.Fields(s)
	if len(words) != 3 {
		return 0, a, b, fmt.Errorf("%q is not a connection: write protocol and both ends, such as tcp 10.0.0.1:443 10.0.0.2:55000", s)
	}
	var p Packet
	if err := p.parseEnds(words[0], words[1], words[2]); err != nil {
		return 0, a, b, err
	}
	if !hasPorts(p.Proto) {
		return 0, a, b, fmt.Errorf("%s has no connections: write tcp, udp or sctp", words[0])
	}
	return p.Proto, netip.AddrPortFrom(p.Src, p.SPort), netip.AddrPortFrom(p.Dst, p.DPort), nil
}

const packetForm = "write protocol, source and destination, such as tcp 10.0.0.1:443 10.0.0.2:55000, or arp"

func (p *Packet) parseEnds(proto, src, dst string) error {
	numbers, err := ParseProto(proto)
	if err != nil {
		return err
	}
	p.Proto = numbers[0]
	parse := parseAddr
	if hasPorts(p.Proto) && !p.Fragment {
		parse = parseAddrPort
	}
	if p.Src, p.SPort, err = parse(proto, src); err != nil {
		return err
	}
	if p.Dst, p.DPort, err = parse(proto, dst); err != nil {
		return err
	}
	if p.Src.Is4() != p.Dst.Is4() {
		return fmt.Errorf("no packet goes from %v to %v: write two addresses of one IP version", p.Src, p.Dst)
	}
	if strings.EqualFold(proto, "icmp") && p.Src.Is6() {
		p.Proto = ICMPv6
	}
	switch {
	case p.PureAck && (p.Proto != TCP || p.Fragment):
		return fmt.Errorf("only whole tcp packets are acknowledgements: leave out ack")
	case p.ICMPType > 0 && p.Proto != ICMP && p.Proto != ICMPv6:
		return fmt.Errorf("%s has no message types: leave out type", proto)
	}
	return nil
}

func parseAddrPort(proto, s string) (netip.Addr, uint16, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		if a, err := netip.ParseAddr(s); err == nil {
			return a, 0, fmt.Errorf("%s packets have ports: write %s with the port for PORT", proto, net.JoinHostPort(s, "PORT"))
		}
		return netip.Addr{}, 0, fmt.Errorf("%q is not an address and port: write for example 10.0.0.1:443 or [fd00::1]:443", s)
	}
	a, err := plainAddr(ap.Addr())
	return a, ap.Port(), err
}

func parseAddr(proto, s string) (netip.Addr, uint16, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		if ap, err := netip.ParseAddrPort(s); err == nil {
			return a, 0, fmt.Errorf("%s packets have no ports here: write %v", proto, ap.Addr())
		}
		return a, 0, fmt.Errorf("%q is not an address: write for example 10.0.0.1 or fd00::1", s)
	}
	a, err = plainAddr(a)
	return a, 0, err
}

func plainAddr(a netip.Addr) (netip.Addr, error) {
	if a.Zone() != "" {
		return a, fmt.Errorf("%v names an interface, which no packet does: write %v", a, a.WithZone(""))
	}
	return a.Unmap(), nil
}

func (p *Packet) parseExtras(words []string) error {
	for len(words) > 0 {
		key := strings.ToLower(words[0])
		switch key {
		case "ack", "fragment":
			if p.Link != "" {
				return fmt.Errorf("%s packets have no %q: leave it out", p.Link, key)
			}
			p.PureAck, p.Fragment = p.PureAck || key == "ack", p.Fragment || key == "fragment"
			words = words[1:]
			continue
		case "dscp", "type", "ttl", "length", "vlan", "pcp", "mark", "smac", "cgroup":
		default:
			return fmt.Errorf("%q is not part of a packet: write dscp, vlan, pcp, mark, smac, cgroup, type, ttl or length and a value, or ack or fragment", words[0])
		}
		if len(words) < 2 {
			return fmt.Errorf("%s has no value: write one after it", key)
		}
		if err := p.parseExtra(key, words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	p.PriorityTag = p.PriorityTag && p.VLAN == 0 // pcp may stand before vlan
	return nil
}

func (p *Packet) parseExtra(key, value string) (err error) {
	number := func(bits int, form string) uint64 {
		n, bad := strconv.ParseUint(value, 0, bits)
		if bad != nil {
			err = fmt.Errorf("%q is not a %s: write %s", value, key, form)
		}
		return n
	}
	switch key {
	case "dscp":
		if p.Link != "" {
			return fmt.Errorf("%s packets have no dscp: leave it out", p.Link)
		}
		p.DSCP, err = ParseDSCP(value)
	case "type":
		if p.Link != "" {
			return fmt.Errorf("%s packets have no type here: leave it out", p.Link)
		}
		p.ICMPType = uint8(number(8, "0 to 255"))
	case "ttl", "length":
		if p.Link != "" {
			return fmt.Errorf("%s packets have no %s here: leave it out", p.Link, key)
		}
		if key == "ttl" {
			p.TTL = uint8(number(8, "1 to 255"))
		} else {
			p.Length = uint16(number(16, "bytes of the IP packet, up to 65535"))
		}
	case "vlan":
		p.VLAN = uint16(number(16, "1 to 4094"))
		if err == nil && (p.VLAN < 1 || p.VLAN > 4094) {
			err = fmt.Errorf("%q is not a vlan: write 1 to 4094", value)
		}
	case "pcp":
		p.PCP, p.PriorityTag = uint8(number(8, "0 to 7")), true
		if err == nil && p.PCP > 7 {
			err = fmt.Errorf("%q is not a pcp: write 0 to 7", value)
		}
	case "smac":
		m, bad := net.ParseMAC(value)
		if bad != nil || len(m) != 6 {
			return fmt.Errorf("%q is not an smac: write a MAC address such as 02:00:5e:10:00:01", value)
		}
		p.SMAC = [6]byte(m)
	case "mark":
		p.Mark = uint32(number(32, "a number such as 7 or 0x7"))
	case "cgroup":
		if !strings.HasPrefix(value, "/") {
			return fmt.Errorf("%q is not a cgroup: write its path below the cgroup2 mount, such as /system.slice/nginx.service", value)
		}
		p.Cgroup = value
	}
	return err
}
