package group

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Protocol numbers that have a name here (IANA, protocol-numbers).
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
	SCTP   = 132
)

// Selector chooses packets: every field that is given must match. A list
// matches if one of its entries does; an empty list or nil field matches all.
type Selector struct {
	// Proto are IP protocol numbers. The word "icmp" gives both ICMP and ICMPv6.
	Proto []uint8
	// Src and Dst are prefixes of either IP version, in packet order: at "in",
	// Src is the remote end.
	Src, Dst []netip.Prefix
	// SPort and DPort match TCP, UDP and SCTP only.
	SPort, DPort []PortRange
	// DSCP are code points, 0 to 63.
	DSCP []Range
	// VLAN are ids of the outermost 802.1Q tag, 1 to 4094.
	VLAN []Range
	// PCP are priority code points (IEEE 802.1Q) of the outermost tag, 0 to 7. What
	// has no tag has none.
	PCP []Range
	// Mark is the packet's fwmark (SO_MARK, nftables "meta mark").
	Mark []Mark
	// SMAC are source MAC addresses, as they are at the device.
	SMAC []MAC
	// Cgroup is the path of a cgroup v2 below its mount point; sockets made in it
	// or below it match. Only for "out" of this host's own sockets. A socket keeps
	// the cgroup that it was made in when its process moves.
	Cgroup string
	// Not are values of which a packet has none: each field of each of them by
	// itself. What has no such field (a port of ICMP, an address of ARP) has none of
	// its values, so it is not excluded. A user writes one; groups inside groups add
	// theirs. They have no Not of their own.
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

// Contains tells whether a number is in the range.
func (r Range) Contains(n uint16) bool { return r.First <= n && n <= r.Last }

// One is the range of one number.
func One(n uint16) Range { return Range{n, n} }

// Mark is a value and the bits of the fwmark that it is compared with.
type Mark struct{ Value, Mask uint32 }

// AllBits is the mask of a mark that is compared as a whole.
const AllBits = 1<<32 - 1

func (m Mark) String() string {
	if m.Mask == AllBits {
		return strconv.FormatUint(uint64(m.Value), 10)
	}
	return fmt.Sprintf("%#x/%#x", m.Value, m.Mask)
}

// MAC is an address and the bits of it that are compared.
type MAC struct{ Address, Mask [6]byte }

var allOfMAC = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func (m MAC) String() string {
	address := net.HardwareAddr(m.Address[:]).String()
	if m.Mask == allOfMAC {
		return address
	}
	return address + "/" + net.HardwareAddr(m.Mask[:]).String()
}

// IsZero tells whether the selector matches every packet.
func (s Selector) IsZero() bool {
	return s.onlyEnds() && len(s.Proto)+len(s.Src)+len(s.Dst)+len(s.SPort)+len(s.DPort) == 0
}

// onlyEnds tells whether a packet's protocol, addresses and ports are all that is asked for.
func (s Selector) onlyEnds() bool {
	return len(s.DSCP)+len(s.VLAN)+len(s.PCP)+len(s.Mark)+len(s.SMAC) == 0 && s.Cgroup == "" && len(s.Not) == 0
}

// OnlyEnds tells whether the selector asks for protocol, addresses and ports alone, also of what
// it excludes: for what a connection shows of itself.
func (s Selector) OnlyEnds() bool {
	excluded := s.Not
	s.Not = nil
	return s.onlyEnds() && !slices.ContainsFunc(excluded, func(n Selector) bool { return !n.onlyEnds() })
}

// AsksForMark tells whether the selector asks for the fwmark, or for its absence.
func (s Selector) AsksForMark() bool {
	return len(s.Mark) > 0 || slices.ContainsFunc(s.Not, Selector.AsksForMark)
}

// Cgroups are the cgroups that the selector names.
func (s Selector) Cgroups() (paths []string) {
	if s.Cgroup != "" {
		paths = append(paths, s.Cgroup)
	}
	for _, n := range s.Not {
		paths = append(paths, n.Cgroups()...)
	}
	return paths
}

// String prints the selector as the fields a user would write.
func (s Selector) String() string {
	var b []string
	add := func(key string, list []string) {
		if len(list) > 0 {
			b = append(b, key+" "+strings.Join(list, ","))
		}
	}
	add("proto", texts(s.Proto, ProtoName))
	add("src", texts(s.Src, netip.Prefix.String))
	add("dst", texts(s.Dst, netip.Prefix.String))
	add("sport", texts(s.SPort, PortRange.String))
	add("dport", texts(s.DPort, PortRange.String))
	add("dscp", texts(s.DSCP, DSCPText))
	add("vlan", texts(s.VLAN, Range.String))
	add("pcp", texts(s.PCP, Range.String))
	add("mark", texts(s.Mark, Mark.String))
	add("smac", texts(s.SMAC, MAC.String))
	if s.Cgroup != "" {
		b = append(b, "cgroup "+s.Cgroup)
	}
	for _, n := range s.Not {
		b = append(b, "not ("+n.String()+")")
	}
	if len(b) == 0 {
		return "any packet"
	}
	return strings.Join(b, " ")
}

func texts[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

var protoNames = map[string][]uint8{
	"tcp": {TCP}, "udp": {UDP}, "sctp": {SCTP}, "icmp": {ICMP, ICMPv6}, "icmpv6": {ICMPv6},
}

// ParseProto reads "tcp", "udp", "sctp", "icmp" (both versions), "icmpv6" or a
// number.
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

// ProtoName is the name of a protocol number, or the number.
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

// dscpNames are the code points with a name (RFC 2474, 2597, 3246, 5865, 8622).
var dscpNames = map[string]uint8{
	"cs0": 0, "be": 0, "le": 1, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32, "cs5": 40, "cs6": 48, "cs7": 56,
	"af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20, "af23": 22,
	"af31": 26, "af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38,
	"voice-admit": 44, "ef": 46,
}

// ParseDSCP reads a code point by name (cs1, af21, ef, le) or number.
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

// DSCPName is the name of a code point, or its number.
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

// DSCPText is a range of code points as ParseDSCPRange reads it: by name, where all of it has one.
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

// ParseDSCPRange reads a code point, or a range such as "8-15" or "af11-af13".
func ParseDSCPRange(s string) (Range, error) {
	if v, err := ParseDSCP(s); err == nil {
		return One(uint16(v)), nil
	}
	for i, r := range s { // one name has a dash in it
		if r != '-' {
			continue
		}
		first, err1 := ParseDSCP(strings.TrimSpace(s[:i]))
		last, err2 := ParseDSCP(strings.TrimSpace(s[i+1:]))
		switch {
		case err1 != nil || err2 != nil:
		case first > last:
			return Range{}, fmt.Errorf("%q is no range of DSCP, because %s is %d and %s is %d: write the smaller one first", s, strings.TrimSpace(s[:i]), first, strings.TrimSpace(s[i+1:]), last)
		default:
			return Range{uint16(first), uint16(last)}, nil
		}
	}
	return Range{}, fmt.Errorf("%q is not a DSCP: write a name such as cs1, af21 or ef, a number from 0 to 63, or a range such as 8-15 or af11-af13", s)
}

// ParseVLAN reads the id of a VLAN, or a range such as "100-199".
func ParseVLAN(s string) (Range, error) {
	r, ok := parseRange(s)
	if !ok || r.First < 1 || r.Last > 4094 {
		return Range{}, fmt.Errorf("%q is not a VLAN id: write 1 to 4094, or a range such as 100-199", s)
	}
	return r, nil
}

// ParsePCP reads a priority code point, or a range such as "5-7".
func ParsePCP(s string) (Range, error) {
	r, ok := parseRange(s)
	if !ok || r.Last > 7 {
		return Range{}, fmt.Errorf("%q is not an 802.1p priority: write 0 to 7, or a range such as 5-7", s)
	}
	return r, nil
}

// parseRange reads "7", "0x7" or "7-9".
func parseRange(s string) (Range, bool) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err1 := number(strings.TrimSpace(first), 16)
	b, err2 := number(strings.TrimSpace(last), 16)
	return Range{uint16(a), uint16(b)}, err1 == nil && err2 == nil && a <= b
}

// number reads decimal or 0x hexadecimal, unsigned. A leading zero is no octal.
func number(s string, bits int) (uint64, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(hex, 16, bits)
	}
	return strconv.ParseUint(s, 10, bits)
}

// ParseMark reads a mark, decimal or 0x hexadecimal, and the mask behind a slash, if it is not
// compared as a whole: "7", "0x4000/0xff00".
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
		return Mark{}, fmt.Errorf("%q has a mask without bits and would match every mark: write the bits that count, for example 0x4000/0xff00, or leave it out", s)
	case v&^m != 0:
		return Mark{}, fmt.Errorf("%q can never match, because it has bits that its mask leaves out: write %#x/%#x", s, v&m, m)
	}
	return Mark{uint32(v), uint32(m)}, nil
}

// ParseMAC reads a MAC address, and the mask behind a slash if not all of it counts:
// "02:00:00:00:00:01", "aa:bb:cc:00:00:00/ff:ff:ff:00:00:00".
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
		return MAC{}, fmt.Errorf("%q has a mask without bits and would match every address: write the bits that count, or leave it out", s)
	case within != out:
		return MAC{}, fmt.Errorf("%q can never match, because it has bits that its mask leaves out: write %v", s, within)
	case out.Address[0]&1 != 0:
		return MAC{}, fmt.Errorf("%q is the address of a group, from which nothing is ever sent: write that of a device", s)
	}
	return out, nil
}

// ParsePortRange reads "443" or "8000-8099".
func ParsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if err1 != nil || err2 != nil || a > b {
		return PortRange{}, fmt.Errorf("%q is not a port: write a number from 0 to 65535 or a range such as 8000-8099", s)
	}
	return PortRange{uint16(a), uint16(b)}, nil
}
