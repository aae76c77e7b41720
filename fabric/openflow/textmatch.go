package openflow

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// String is the field as ovs-ofctl prints it in a match, such as "dl_dst=0a:00:00:00:00:01".
func (f Field) String() string {
	info := f.ID().info()
	switch {
	case info == nil:
		s := fmt.Sprintf("OXM_%04x_%d=0x%s", f.ID().Class(), f.ID()&0x7f, hex.EncodeToString(f.Value()))
		if f.Masked() {
			s += "/0x" + hex.EncodeToString(f.Mask())
		}
		return s
	case len(f.value()) != info.bytes():
		return info.ovs
	}
	v := f.Uint()
	switch f.ID() {
	case FieldEthType:
		return fmt.Sprintf("dl_type=0x%04x", v)
	case FieldIPDSCP:
		return fmt.Sprintf("nw_tos=%d", v<<2)
	case FieldIPv6FLabel:
		s := fmt.Sprintf("ipv6_label=0x%05x", v)
		if f.Masked() {
			s += fmt.Sprintf("/0x%05x", f.UintMask())
		}
		return s
	case FieldTCPFlags:
		return "tcp_flags=" + tcpFlagsText(v, f.UintMask()&0xfff)
	case FieldVLANVID:
		switch {
		case f.Masked():
			return fmt.Sprintf("vlan_tci=0x%04x/0x%04x", v, f.UintMask())
		case v&vlanPresent != 0:
			return fmt.Sprintf("dl_vlan=%d", v&^vlanPresent)
		}
		return "vlan_tci=0x0000/0x1fff"
	}
	return info.ovs + "=" + f.text()
}

// tcpFlagNames are those of ovs-ofctl, from the lowest bit on.
var tcpFlagNames = [...]string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"}

// tcpFlagsText is such as "+syn-ack" for a mask of two flags, and "syn|ack" for one of all.
func tcpFlagsText(v, mask uint64) string {
	switch {
	case mask == 0:
		return "0/0"
	case mask == 0xfff && v == 0:
		return "0"
	}
	var words []string
	for n, name := range tcpFlagNames {
		set := v>>n&1 == 1
		switch {
		case mask>>n&1 == 0:
		case mask == 0xfff && set:
			words = append(words, name)
		case mask == 0xfff:
		case set:
			words = append(words, "+"+name)
		default:
			words = append(words, "-"+name)
		}
	}
	if mask == 0xfff {
		return strings.Join(words, "|")
	}
	return strings.Join(words, "")
}

// text is the value and mask of a field of OpenFlow 1.3.
func (f Field) text() string {
	switch f.ID().info().form {
	case formMAC:
		if f.Masked() {
			return f.MAC().String() + "/" + MAC(f.Mask()).String()
		}
		return f.MAC().String()
	case formIPv4, formIPv6:
		s := f.Addr().String()
		if p, ok := f.Prefix(); ok {
			if f.Masked() {
				s += fmt.Sprintf("/%d", p.Bits())
			}
			return s
		}
		mask, _ := netip.AddrFromSlice(f.Mask())
		return s + "/" + mask.String()
	case formPort:
		return PortNo(f.Uint()).String()
	case formDecimal:
		if !f.Masked() {
			return fmt.Sprint(f.Uint())
		}
	}
	if f.Masked() {
		return hexadecimal(f.Uint()) + "/" + hexadecimal(f.UintMask())
	}
	return hexadecimal(f.Uint())
}

// protocols are the words by which ovs-ofctl prints an Ethernet type, or that and a protocol.
var protocols = map[uint64]map[uint64]string{
	ethIPv4:  {0: "ip", protoICMP: "icmp", protoTCP: "tcp", protoUDP: "udp", protoSCTP: "sctp"},
	ethIPv6:  {0: "ipv6", protoICMPv6: "icmp6", protoTCP: "tcp6", protoUDP: "udp6", protoSCTP: "sctp6"},
	ethARP:   {0: "arp"},
	0x8035:   {0: "rarp"},
	ethMPLS:  {0: "mpls"},
	ethMPLSM: {0: "mplsm"},
}

// String is the match as ovs-ofctl prints it, such as "tcp,in_port=1,nw_dst=10.0.0.0/8". It is empty if the match is.
func (m Match) String() string {
	var words []string
	var hide [2]FieldID
	if t, ok := m.Get(FieldEthType); ok && protocols[t.Uint()] != nil {
		names := protocols[t.Uint()]
		word := names[0]
		hide[0] = FieldEthType
		if p, ok := m.Get(FieldIPProto); ok && p.Uint() != 0 && names[p.Uint()] != "" {
			word = names[p.Uint()]
			hide[1] = FieldIPProto
		}
		words = append(words, word)
	}
	_, priority := m.Get(FieldVLANPCP)
	for _, f := range m {
		implied := priority && f == AnyVLAN()
		if f.ID() != hide[0] && f.ID() != hide[1] && !implied {
			words = append(words, f.String())
		}
	}
	return strings.Join(words, ",")
}

// rule is a priority and a match, as ovs-ofctl prints them.
func rule(priority uint16, m Match) string {
	if priority == DefaultPriority {
		return m.String()
	}
	s := fmt.Sprintf("priority=%d", priority)
	if len(m) > 0 {
		s += "," + m.String()
	}
	return s
}
