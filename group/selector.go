package group

import (
	"fmt"
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
	DSCP []uint8
	// VLAN are ids of the outermost 802.1Q tag, 1 to 4094.
	VLAN []uint16
	// Mark is the packet's fwmark (SO_MARK, nftables "meta mark").
	Mark []uint32
	// Cgroup is the path of a cgroup v2 below its mount point; sockets made in it
	// or below it match. Only for "out" of this host's own sockets. A socket keeps
	// the cgroup that it was made in when its process moves.
	Cgroup string
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

func (p PortRange) String() string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// IsZero tells whether the selector matches every packet.
func (s Selector) IsZero() bool {
	return len(s.Proto)+len(s.Src)+len(s.Dst)+len(s.SPort)+len(s.DPort)+len(s.DSCP)+len(s.VLAN)+len(s.Mark) == 0 && s.Cgroup == ""
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
	add("dscp", texts(s.DSCP, DSCPName))
	add("vlan", texts(s.VLAN, func(v uint16) string { return strconv.Itoa(int(v)) }))
	add("mark", texts(s.Mark, func(m uint32) string { return strconv.FormatUint(uint64(m), 10) }))
	if s.Cgroup != "" {
		b = append(b, "cgroup "+s.Cgroup)
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
