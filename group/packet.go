package group

import (
	"fmt"
	"net"
	"net/netip"
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
	DSCP     uint8
	VLAN     uint16
	Mark     uint32
	// Cgroup is the path of the socket's cgroup, or empty if unknown.
	Cgroup string
}

// HasPorts tells whether the packet has ports to match.
func (p Packet) HasPorts() bool { return p.Link == "" && !p.Fragment && hasPorts(p.Proto) }

func hasPorts(proto uint8) bool { return proto == TCP || proto == UDP || proto == SCTP }

// Control tells whether the packet is of the kinds that no rule sees, because a
// link without them does not work: ARP, LLDP and STP, neighbour discovery
// (RFC 4861), DHCP between its own ports, and pure TCP acknowledgements.
func (p Packet) Control() bool {
	switch {
	case p.Link != "":
		return p.Link == "arp" || p.Link == "lldp" || p.Link == "stp"
	case p.Fragment:
		return false
	case p.Proto == TCP:
		return p.PureAck
	case p.Proto == UDP:
		return isDHCP(p.SPort, p.DPort, 67, 68) || isDHCP(p.SPort, p.DPort, 546, 547)
	}
	return p.Proto == ICMPv6 && p.Src.Is6() && p.ICMPType >= 133 && p.ICMPType <= 137
}

func isDHCP(s, d, a, b uint16) bool { return (s == a || s == b) && (d == a || d == b) }

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
	add(p.DSCP > 0, "dscp %s", DSCPName(p.DSCP))
	add(p.VLAN > 0, "vlan %d", p.VLAN)
	add(p.Mark > 0, "mark %d", p.Mark)
	add(p.Cgroup != "", "cgroup %s", p.Cgroup)
	return out
}

// ParsePacket reads "tcp 10.0.0.1:443 10.0.0.2:55000 dscp cs1 mark 7": protocol,
// source and destination, and then, in any order, dscp, vlan, mark, cgroup and
// (ICMP) type with their values, and the words ack (a TCP segment with nothing
// else) and fragment (a part other than the first, so without ports). What is
// not IP has a name alone: "arp", "lldp" or "stp". Packet.String prints the same.
func ParsePacket(s string) (Packet, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Packet{}, fmt.Errorf("the packet is empty: %s", packetForm)
	}
	var p Packet
	switch first := strings.ToLower(words[0]); first {
	case "arp", "lldp", "stp":
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
		case "dscp", "type", "vlan", "mark", "cgroup":
		default:
			return fmt.Errorf("%q is not part of a packet: write dscp, vlan, mark, cgroup or type and a value, or ack or fragment", words[0])
		}
		if len(words) < 2 {
			return fmt.Errorf("%s has no value: write one after it", key)
		}
		if err := p.parseExtra(key, words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
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
	case "vlan":
		p.VLAN = uint16(number(16, "1 to 4094"))
		if err == nil && (p.VLAN < 1 || p.VLAN > 4094) {
			err = fmt.Errorf("%q is not a vlan: write 1 to 4094", value)
		}
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
