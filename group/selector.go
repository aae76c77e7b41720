package group

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Protocol numbers with a name in this package (IANA, protocol-numbers).
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
	SCTP   = 132
)

// Selector matches packets: every field that is set must match. A list matches if one of its
// entries matches; an empty list or nil field matches all packets.
type Selector struct {
	// Proto lists IP protocol numbers. The word "icmp" stands for both ICMP and ICMPv6.
	Proto []uint8
	// Src and Dst are prefixes of either IP version, as in the packet header: for "in", Src is
	// the remote end.
	Src, Dst []netip.Prefix
	// SPort and DPort match TCP, UDP and SCTP only.
	SPort, DPort []PortRange
	// DSCP lists code points, 0 to 63.
	DSCP []Range
	// VLAN lists IDs of the outermost 802.1Q tag, 1 to 4094.
	VLAN []Range
	// PCP lists priority code points (IEEE 802.1Q) of the outermost tag, 0 to 7. Untagged
	// packets have none.
	PCP []Range
	// Mark lists values of the packet's fwmark (SO_MARK, nftables "meta mark").
	Mark []Mark
	// SMAC lists source MAC addresses, as seen at the device.
	SMAC []MAC
	// Cgroup is the path of a cgroup v2 below its mount point. Sockets created in it or below
	// it match. It applies only to "out" of this host's own sockets. A socket keeps the cgroup
	// in which it was created when its process moves to another.
	Cgroup string
	// Not lists exclusions: a packet that has a value of any field of any of them does not
	// match. A packet without the field (a port of ICMP, an address of ARP) is not excluded by
	// that field. A user writes one exclusion; nested groups add their own. Exclusions have no
	// Not themselves.
	Not []Selector
}

// Range is a range of numbers, both ends included.
type Range struct{ First, Last uint16 }

// PortRange is a range of ports.
type PortRange = Range

func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Contains reports whether a number is in the range.
func (r Range) Contains(n uint16) bool { return r.First <= n && n <= r.Last }

// SingleRange returns the range that holds one number.
func SingleRange(n uint16) Range { return Range{n, n} }

// Mark is a value of the fwmark and the mask of the bits that are compared.
type Mark struct{ Value, Mask uint32 }

// AllBits is the mask that compares all bits of a mark.
const AllBits = 1<<32 - 1

func (m Mark) String() string {
	if m.Mask == AllBits {
		return strconv.FormatUint(uint64(m.Value), 10)
	}
	return fmt.Sprintf("%#x/%#x", m.Value, m.Mask)
}

// MAC is an address and the mask of the bits that are compared.
type MAC struct{ Address, Mask [6]byte }

var allOfMAC = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func (m MAC) String() string {
	address := net.HardwareAddr(m.Address[:]).String()
	if m.Mask == allOfMAC {
		return address
	}
	return address + "/" + net.HardwareAddr(m.Mask[:]).String()
}

// IsZero reports whether the selector matches every packet.
func (s Selector) IsZero() bool {
	return len(s.Not) == 0 && !slices.ContainsFunc(Fields, func(f *Field) bool { return f.isSet(&s) })
}

// OnlyFiveTuple reports whether the selector and its exclusions have no fields other than protocol,
// addresses and ports: the fields that a connection determines.
func (s Selector) OnlyFiveTuple() bool {
	return !slices.ContainsFunc(Fields, func(f *Field) bool { return !f.Connection && f.isSet(&s) }) &&
		!slices.ContainsFunc(s.Not, func(n Selector) bool { return !n.OnlyFiveTuple() })
}

// MatchesOnMark reports whether the selector, or an exclusion, matches on the fwmark.
func (s Selector) MatchesOnMark() bool {
	return len(s.Mark) > 0 || slices.ContainsFunc(s.Not, Selector.MatchesOnMark)
}

// Cgroups returns the cgroups that the selector and its exclusions name.
func (s Selector) Cgroups() (paths []string) {
	if s.Cgroup != "" {
		paths = append(paths, s.Cgroup)
	}
	for _, n := range s.Not {
		paths = append(paths, n.Cgroups()...)
	}
	return paths
}

// String formats the selector with the keys used in YAML.
func (s Selector) String() string {
	var b []string
	for _, f := range Fields {
		if f.isSet(&s) {
			b = append(b, f.Name+" "+strings.Join(f.texts(&s), ","))
		}
	}
	for _, n := range s.Not {
		b = append(b, "not ("+n.String()+")")
	}
	if len(b) == 0 {
		return "any packet"
	}
	return strings.Join(b, " ")
}

var protoNames = map[string][]uint8{
	"tcp": {TCP}, "udp": {UDP}, "sctp": {SCTP}, "icmp": {ICMP, ICMPv6}, "icmpv6": {ICMPv6},
}

// ParseProto parses "tcp", "udp", "sctp", "icmp" (both versions), "icmpv6" or a number.
func ParseProto(s string) ([]uint8, error) {
	if p, ok := protoNames[strings.ToLower(s)]; ok {
		return slices.Clone(p), nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("%q is not a protocol: write tcp, udp, sctp, icmp or a number from 0 to 255", s)
	}
	return []uint8{uint8(n)}, nil
}

// ProtoName returns the name of a protocol number, or the number.
func ProtoName(p uint8) string {
	switch p {
	case ICMP:
		return "icmp"
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case ICMPv6:
		return "icmpv6"
	case SCTP:
		return "sctp"
	}
	return strconv.Itoa(int(p))
}

// dscpNames maps names to code points (RFC 2474, 2597, 3246, 5865, 8622).
var dscpNames = map[string]uint8{
	"cs0": 0, "be": 0, "le": 1, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32, "cs5": 40, "cs6": 48, "cs7": 56,
	"af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20, "af23": 22,
	"af31": 26, "af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38,
	"voice-admit": 44, "ef": 46,
}

// ParseDSCP parses a code point by name (cs1, af21, ef, le) or number.
func ParseDSCP(s string) (uint8, error) {
	if v, ok := dscpNames[strings.ToLower(s)]; ok {
		return v, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n > 63 {
		return 0, fmt.Errorf("%q is not a DSCP: write a name such as cs1, af21 or ef, or a number from 0 to 63", s)
	}
	return uint8(n), nil
}

// DSCPName returns the name of a code point, or its number.
func DSCPName(v uint8) string {
	if v == 0 {
		return "cs0"
	}
	for name, n := range dscpNames {
		if n == v {
			return name
		}
	}
	return strconv.Itoa(int(v))
}

// DSCPText formats a range of code points as ParseDSCPRange parses it: by name, if both ends
// have names.
func DSCPText(r Range) string {
	if r.First == r.Last {
		return DSCPName(uint8(r.First))
	}
	first, last := DSCPName(uint8(r.First)), DSCPName(uint8(r.Last))
	if _, err := strconv.Atoi(first); err == nil {
		return r.String()
	}
	if _, err := strconv.Atoi(last); err == nil {
		return r.String()
	}
	return first + "-" + last
}

// ParseDSCPRange parses a code point, or a range such as "8-15" or "af11-af13".
func ParseDSCPRange(s string) (Range, error) {
	if v, err := ParseDSCP(s); err == nil {
		return SingleRange(uint16(v)), nil
	}
	for i, r := range s { // voice-admit contains a dash
		if r != '-' {
			continue
		}
		first, err1 := ParseDSCP(strings.TrimSpace(s[:i]))
		last, err2 := ParseDSCP(strings.TrimSpace(s[i+1:]))
		switch {
		case err1 != nil || err2 != nil:
		case first > last:
			return Range{}, fmt.Errorf("%q is not a DSCP range, because %s is %d and %s is %d: write the smaller one first", s, strings.TrimSpace(s[:i]), first, strings.TrimSpace(s[i+1:]), last)
		default:
			return Range{uint16(first), uint16(last)}, nil
		}
	}
	return Range{}, fmt.Errorf("%q is not a DSCP: write a name such as cs1, af21 or ef, a number from 0 to 63, or a range such as 8-15 or af11-af13", s)
}

// ParseVLAN parses a VLAN ID, or a range such as "100-199".
func ParseVLAN(s string) (Range, error) {
	r, ok := parseRange(s)
	if !ok || r.First < 1 || r.Last > 4094 {
		return Range{}, fmt.Errorf("%q is not a VLAN id: write 1 to 4094, or a range such as 100-199", s)
	}
	return r, nil
}

// ParsePCP parses a priority code point, or a range such as "5-7".
func ParsePCP(s string) (Range, error) {
	r, ok := parseRange(s)
	if !ok || r.Last > 7 {
		return Range{}, fmt.Errorf("%q is not an 802.1p priority: write 0 to 7, or a range such as 5-7", s)
	}
	return r, nil
}

// parseRange parses "7", "0x7" or "7-9".
func parseRange(s string) (Range, bool) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err1 := number(strings.TrimSpace(first), 16)
	b, err2 := number(strings.TrimSpace(last), 16)
	return Range{uint16(a), uint16(b)}, err1 == nil && err2 == nil && a <= b
}

// number parses an unsigned decimal or 0x hexadecimal number. A leading zero does not mean
// octal.
func number(s string, bits int) (uint64, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(hex, 16, bits)
	}
	return strconv.ParseUint(s, 10, bits)
}

// ParsePrefix parses "10.0.0.0/8" or a bare address. Host bits beyond the prefix are rejected,
// because half of the users who write 10.1.2.3/8 mean the address.
func ParsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		switch {
		case a.Zone() != "":
			return netip.Prefix{}, fmt.Errorf("%q has a zone, which is not part of a packet: write %v", s, a.WithZone(""))
		case a.Is4In6():
			return netip.Prefix{}, fmt.Errorf("%q is an IPv4-mapped IPv6 address, which is not sent on a link: write %v", s, a.Unmap())
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q is not an address or prefix: write for example 10.0.0.0/8, 192.0.2.1 or fd00::/8", s)
	}
	if p.Addr().Is4In6() {
		return p, fmt.Errorf("%q is an IPv4-mapped IPv6 prefix, which is not sent on a link: write it as IPv4", s)
	}
	if m := p.Masked(); m != p {
		return p, fmt.Errorf("%q has host bits set: write %v for the network, or %v for the one address", s, m, p.Addr())
	}
	return p, nil
}

// ParseMark parses a mark, decimal or 0x hexadecimal, and an optional mask after a slash: "7",
// "0x4000/0xff00".
func ParseMark(s string) (Mark, error) {
	value, mask, masked := strings.Cut(s, "/")
	v, err1 := number(strings.TrimSpace(value), 32)
	m, err2 := uint64(AllBits), error(nil)
	if masked {
		m, err2 = number(strings.TrimSpace(mask), 32)
	}
	switch {
	case err1 != nil || err2 != nil:
		return Mark{}, fmt.Errorf("%q is not a mark: write a number such as 7 or 0x7, up to 0xffffffff, or with a mask 0x4000/0xff00", s)
	case m == 0:
		return Mark{}, fmt.Errorf("%q has an empty mask and would match every mark: write the bits to compare, for example 0x4000/0xff00, or remove it", s)
	case v&^m != 0:
		return Mark{}, fmt.Errorf("%q can never match, because it has bits outside its mask: write %#x/%#x", s, v&m, m)
	}
	return Mark{uint32(v), uint32(m)}, nil
}

// ParseMAC parses a MAC address, and an optional mask after a slash: "02:00:00:00:00:01",
// "aa:bb:cc:00:00:00/ff:ff:ff:00:00:00".
func ParseMAC(s string) (MAC, error) {
	address, mask, masked := strings.Cut(s, "/")
	a, err1 := net.ParseMAC(strings.TrimSpace(address))
	m, err2 := net.HardwareAddr(allOfMAC[:]), error(nil)
	if masked {
		m, err2 = net.ParseMAC(strings.TrimSpace(mask))
	}
	if err1 != nil || err2 != nil || len(a) != 6 || len(m) != 6 {
		return MAC{}, fmt.Errorf("%q is not a MAC address: write for example 02:00:5e:10:00:01, or with a mask aa:bb:cc:00:00:00/ff:ff:ff:00:00:00", s)
	}
	out := MAC{[6]byte(a), [6]byte(m)}
	within := out
	for i := range within.Address {
		within.Address[i] &= within.Mask[i]
	}
	switch {
	case out.Mask == [6]byte{}:
		return MAC{}, fmt.Errorf("%q has an empty mask and would match every address: write the bits to compare, or remove it", s)
	case within != out:
		return MAC{}, fmt.Errorf("%q can never match, because it has bits outside its mask: write %v", s, within)
	case out.Address[0]&1 != 0:
		return MAC{}, fmt.Errorf("%q is a multicast address, which is never a source: write the address of a device", s)
	}
	return out, nil
}

// ParsePortRange parses "443" or "8000-8099".
func ParsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if err1 == nil && err2 == nil && a > b {
		return PortRange{}, fmt.Errorf("%q ends before it begins: write %d-%d", s, b, a)
	}
	if err1 != nil || err2 != nil {
		return PortRange{}, fmt.Errorf("%q is not a port: write a number from 0 to 65535 or a range such as 8000-8099", s)
	}
	return PortRange{uint16(a), uint16(b)}, nil
}
