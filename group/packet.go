package group

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Packet is the part of one packet that rules can match. The zero values of VLAN and Mark mean
// none.
type Packet struct {
	// Link names a packet that is not IP: "arp", "lldp", "stp" or an EtherType. It is empty for
	// IP, and then the addresses are valid and of one version.
	Link     string
	Proto    uint8
	Src, Dst netip.Addr
	// SPort and DPort are set for TCP, UDP and SCTP.
	SPort, DPort uint16
	// Fragment is set for a fragment other than the first, which has no ports. The kernel
	// classifier assigns it like the first fragment; Packet describes a fragment whose first
	// fragment was not seen.
	Fragment bool
	// PureAck is set for a TCP segment that is only an acknowledgement.
	PureAck bool
	// ICMPType is the type of an ICMP message.
	ICMPType uint8
	// TTL is the IPv4 TTL or the hop limit. Length is the length of the IP packet in bytes,
	// headers included. 0 stands for the value that the protocol prescribes. Only Control uses
	// both.
	TTL    uint8
	Length uint16
	DSCP   uint8
	VLAN   uint16
	// PCP is the priority of the outermost 802.1Q tag. It is valid if VLAN is set (a tag with a
	// VLAN ID) or PriorityTag is set (a tag without).
	PCP         uint8
	PriorityTag bool
	Mark        uint32
	// SMAC is the source MAC address; all zero on a device that has none.
	SMAC [6]byte
	// Cgroup is the path of the socket's cgroup, or empty if unknown.
	Cgroup string
}

// Tagged reports whether the packet has an 802.1Q tag.
func (p Packet) Tagged() bool { return p.VLAN > 0 || p.PriorityTag }

// HasPorts reports whether the packet has ports to match.
func (p Packet) HasPorts() bool { return p.Link == "" && !p.Fragment && hasPorts(p.Proto) }

func hasPorts(proto uint8) bool { return proto == TCP || proto == UDP || proto == SCTP }

// Control reports whether the packet is control traffic. Control traffic precedes all other
// packets, within a budget of the group that the rules assign it to, because a link does not
// work without it: ARP, LLDP, STP, LACP and EAPOL, neighbour discovery (RFC 4861), multicast
// membership (IGMP, MLD), DHCP between its own ports, and pure TCP acknowledgements. Control
// corresponds to bpf/control.h; the message body is assumed to be valid for its protocol.
func (p Packet) Control() bool {
	switch {
	case p.Link != "":
		return slices.Contains(controlLinks, p.Link)
	case p.Fragment:
		return false
	case p.Proto == TCP:
		return p.PureAck
	case p.Proto == UDP && p.Src.Is4():
		return dhcpPorts(p.SPort, p.DPort, 68, 67) && p.lengthIn(20+8+240, 20+8) && (!p.Src.IsUnspecified() || p.Dst == broadcast)
	case p.Proto == UDP:
		return dhcpPorts(p.SPort, p.DPort, 546, 547) && p.lengthIn(40+8+4, 40+8)
	case p.Proto == igmp && p.Src.Is4():
		return p.ttlIs(1) && p.Dst.IsMulticast() && p.lengthIn(20+8, 20)
	case p.Proto == ICMPv6 && p.Src.Is6():
		return p.isNeighbourDiscovery() || p.isMLD()
	}
	return false
}

const igmp = 2

var (
	controlLinks = []string{"arp", "lldp", "stp", "lacp", "eapol"}
	broadcast    = netip.AddrFrom4([4]byte{255, 255, 255, 255})
)

// maxControlMessage is the maximum length of a control message without lower-layer headers
// (MAX_MESSAGE in bpf/control.h).
const maxControlMessage = 576

// lengthIn reports whether the packet's length is possible for a control message: at least minLen
// bytes with all headers, and at most maxControlMessage bytes without headers bytes of headers.
func (p Packet) lengthIn(minLen, headers uint16) bool {
	return p.Length == 0 || p.Length >= minLen && p.Length <= headers+maxControlMessage
}

func (p Packet) ttlIs(n uint8) bool { return p.TTL == 0 || p.TTL == n }

// isNeighbourDiscovery reports whether the packet is neighbour discovery.
func (p Packet) isNeighbourDiscovery() bool {
	minLen := map[uint8]uint16{133: 8, 134: 16, 135: 24, 136: 24, 137: 40}[p.ICMPType]
	return minLen > 0 && p.ttlIs(255) && p.lengthIn(40+minLen, 40)
}

// isMLD reports whether the packet is MLD, which has eight bytes of options.
func (p Packet) isMLD() bool {
	minLen := map[uint8]uint16{130: 24, 131: 24, 132: 24, 143: 8}[p.ICMPType]
	return minLen > 0 && p.ttlIs(1) && p.Dst.IsMulticast() && (p.Src.IsLinkLocalUnicast() || p.Src.IsUnspecified()) && p.lengthIn(48+minLen, 48)
}

// dhcpPorts reports whether the ports are those of DHCP from a client, from a server, or
// between relays.
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

// ParsePacket parses "tcp 10.0.0.1:443 10.0.0.2:55000 dscp cs1 mark 7": protocol, source and
// destination, and then, in any order, dscp, vlan, pcp, mark, smac, cgroup, ttl, length and
// (ICMP) type with their values, and the words ack (a pure TCP acknowledgement) and fragment (a
// fragment other than the first, without ports). Packets that are not IP have only a name:
// "arp", "lldp", "stp", "lacp" or "eapol". Packet.String formats the same syntax.
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

// ParseConn parses "tcp 10.0.0.1:443 10.0.0.2:55000": a protocol with ports and the two ends of
// a connection.
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
		return fmt.Errorf("%v and %v are of different IP versions: write two addresses of one version", p.Src, p.Dst)
	}
	if strings.EqualFold(proto, "icmp") && p.Src.Is6() {
		p.Proto = ICMPv6
	}
	switch {
	case p.PureAck && (p.Proto != TCP || p.Fragment):
		return fmt.Errorf("only unfragmented tcp packets can be acknowledgements: leave out ack")
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
		return a, fmt.Errorf("%v has a zone, which is not part of a packet: write %v", a, a.WithZone(""))
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
			return fmt.Errorf("%q is not a packet field: write dscp, vlan, pcp, mark, smac, cgroup, type, ttl or length and a value, or ack or fragment", words[0])
		}
		if len(words) < 2 {
			return fmt.Errorf("%s has no value: write one after it", key)
		}
		if err := p.parseExtra(key, words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	p.PriorityTag = p.PriorityTag && p.VLAN == 0 // pcp may precede vlan
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
