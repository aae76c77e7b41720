package openflow

import "fmt"

// FieldID is the class and number of a match field: oxm_class << 7 | oxm_field (section 7.2.3.2, figure of the OXM
// TLV header).
type FieldID uint32

// The classes of match fields (enum ofp_oxm_class).
const (
	ClassNXM0         = 0x0000
	ClassNXM1         = 0x0001
	ClassBasic        = 0x8000 // the fields of OpenFlow 1.3
	ClassExperimenter = 0xffff
)

// The match fields of OpenFlow 1.3 (enum oxm_ofb_match_fields, section 7.2.3.7).
const (
	FieldInPort FieldID = ClassBasic<<7 + iota
	FieldInPhyPort
	FieldMetadata
	FieldEthDst
	FieldEthSrc
	FieldEthType
	FieldVLANVID
	FieldVLANPCP
	FieldIPDSCP
	FieldIPECN
	FieldIPProto
	FieldIPv4Src
	FieldIPv4Dst
	FieldTCPSrc
	FieldTCPDst
	FieldUDPSrc
	FieldUDPDst
	FieldSCTPSrc
	FieldSCTPDst
	FieldICMPv4Type
	FieldICMPv4Code
	FieldARPOp
	FieldARPSPA
	FieldARPTPA
	FieldARPSHA
	FieldARPTHA
	FieldIPv6Src
	FieldIPv6Dst
	FieldIPv6FLabel
	FieldICMPv6Type
	FieldICMPv6Code
	FieldIPv6NDTarget
	FieldIPv6NDSLL
	FieldIPv6NDTLL
	FieldMPLSLabel
	FieldMPLSTC
	FieldMPLSBoS
	FieldPBBISID
	FieldTunnelID
	FieldIPv6ExtHdr
	fieldEnd
)

// FieldTCPFlags is the flags of a TCP segment as in bytes 13 and 14 of its header (RFC 9293, section 3.1): FIN 0x001, SYN 0x002, RST 0x004, ACK 0x010.
// OpenFlow 1.3 does not define it: it is an extension (ONF EXT-109), which Open vSwitch has.
const FieldTCPFlags FieldID = ClassExperimenter<<7 | 42

// experimenterONF is what the body of a field of the ONF begins with: its number as an experimenter.
const experimenterONF = "ONF\x00"

// experimenter is what the bodies of a field begin with, before value and mask.
func (id FieldID) experimenter() string {
	if id == FieldTCPFlags {
		return experimenterONF
	}
	return ""
}

// form is how the value of a field is read.
type form uint8

const (
	formHex form = iota
	formDecimal
	formPort
	formMAC
	formIPv4
	formIPv6
)

// need is a field that must be in the match, with one of some values.
type need struct {
	field  FieldID
	values []uint64
}

// fieldInfo describes a field of table 12 of section 7.2.3.7.
type fieldInfo struct {
	name     string // of the specification, as ovs-ofctl accepts it
	ovs      string // as ovs-ofctl prints it in a match
	set      string // as ovs-ofctl prints it in set_field
	bits     int
	maskable bool
	form     form
	needs    []need
}

// bytes is the length of the value. Those of 20 bits are in 4 bytes.
func (f *fieldInfo) bytes() int {
	if f.bits == 20 {
		return 4
	}
	return (f.bits + 7) / 8
}

// The values of prerequisites.
const (
	ethIPv4  = 0x0800
	ethARP   = 0x0806
	ethIPv6  = 0x86dd
	ethMPLS  = 0x8847
	ethMPLSM = 0x8848
	ethPBB   = 0x88e7

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

var (
	needInPort = []need{{FieldInPort, nil}}
	needVLAN   = []need{{FieldVLANVID, nil}}
	needIP     = []need{{FieldEthType, []uint64{ethIPv4, ethIPv6}}}
	needIPv4   = []need{{FieldEthType, []uint64{ethIPv4}}}
	needIPv6   = []need{{FieldEthType, []uint64{ethIPv6}}}
	needARP    = []need{{FieldEthType, []uint64{ethARP}}}
	needMPLS   = []need{{FieldEthType, []uint64{ethMPLS, ethMPLSM}}}
	needPBB    = []need{{FieldEthType, []uint64{ethPBB}}}
	needTCP    = append(needIP[:1:1], need{FieldIPProto, []uint64{protoTCP}})
	needUDP    = append(needIP[:1:1], need{FieldIPProto, []uint64{protoUDP}})
	needSCTP   = append(needIP[:1:1], need{FieldIPProto, []uint64{protoSCTP}})
	needICMPv4 = append(needIPv4[:1:1], need{FieldIPProto, []uint64{protoICMP}})
	needICMPv6 = append(needIPv6[:1:1], need{FieldIPProto, []uint64{protoICMPv6}})
	needND     = append(needICMPv6[:2:2], need{FieldICMPv6Type, []uint64{135, 136}})
	needNS     = append(needICMPv6[:2:2], need{FieldICMPv6Type, []uint64{135}})
	needNA     = append(needICMPv6[:2:2], need{FieldICMPv6Type, []uint64{136}})
)

// fields has the fields of OpenFlow 1.3 by their number.
var fields = [...]fieldInfo{
	{"in_port", "in_port", "in_port", 32, false, formPort, nil},
	{"in_phy_port", "in_phy_port", "in_phy_port", 32, false, formPort, needInPort},
	{"metadata", "metadata", "metadata", 64, true, formHex, nil},
	{"eth_dst", "dl_dst", "eth_dst", 48, true, formMAC, nil},
	{"eth_src", "dl_src", "eth_src", 48, true, formMAC, nil},
	{"eth_type", "dl_type", "eth_type", 16, false, formHex, nil},
	{"vlan_vid", "vlan_tci", "vlan_vid", 13, true, formHex, nil},
	{"vlan_pcp", "dl_vlan_pcp", "vlan_pcp", 3, false, formDecimal, needVLAN},
	{"ip_dscp", "nw_tos", "ip_dscp", 6, false, formDecimal, needIP},
	{"ip_ecn", "nw_ecn", "nw_ecn", 2, false, formDecimal, needIP},
	{"ip_proto", "nw_proto", "nw_proto", 8, false, formDecimal, needIP},
	{"ipv4_src", "nw_src", "ip_src", 32, true, formIPv4, needIPv4},
	{"ipv4_dst", "nw_dst", "ip_dst", 32, true, formIPv4, needIPv4},
	{"tcp_src", "tp_src", "tcp_src", 16, false, formDecimal, needTCP},
	{"tcp_dst", "tp_dst", "tcp_dst", 16, false, formDecimal, needTCP},
	{"udp_src", "tp_src", "udp_src", 16, false, formDecimal, needUDP},
	{"udp_dst", "tp_dst", "udp_dst", 16, false, formDecimal, needUDP},
	{"sctp_src", "tp_src", "sctp_src", 16, false, formDecimal, needSCTP},
	{"sctp_dst", "tp_dst", "sctp_dst", 16, false, formDecimal, needSCTP},
	{"icmpv4_type", "icmp_type", "icmp_type", 8, false, formDecimal, needICMPv4},
	{"icmpv4_code", "icmp_code", "icmp_code", 8, false, formDecimal, needICMPv4},
	{"arp_op", "arp_op", "arp_op", 16, false, formDecimal, needARP},
	{"arp_spa", "arp_spa", "arp_spa", 32, true, formIPv4, needARP},
	{"arp_tpa", "arp_tpa", "arp_tpa", 32, true, formIPv4, needARP},
	{"arp_sha", "arp_sha", "arp_sha", 48, true, formMAC, needARP},
	{"arp_tha", "arp_tha", "arp_tha", 48, true, formMAC, needARP},
	{"ipv6_src", "ipv6_src", "ipv6_src", 128, true, formIPv6, needIPv6},
	{"ipv6_dst", "ipv6_dst", "ipv6_dst", 128, true, formIPv6, needIPv6},
	{"ipv6_flabel", "ipv6_label", "ipv6_label", 20, true, formHex, needIPv6},
	{"icmpv6_type", "icmp_type", "icmpv6_type", 8, false, formDecimal, needICMPv6},
	{"icmpv6_code", "icmp_code", "icmpv6_code", 8, false, formDecimal, needICMPv6},
	{"ipv6_nd_target", "nd_target", "nd_target", 128, false, formIPv6, needND},
	{"ipv6_nd_sll", "nd_sll", "nd_sll", 48, false, formMAC, needNS},
	{"ipv6_nd_tll", "nd_tll", "nd_tll", 48, false, formMAC, needNA},
	{"mpls_label", "mpls_label", "mpls_label", 20, false, formDecimal, needMPLS},
	{"mpls_tc", "mpls_tc", "mpls_tc", 3, false, formDecimal, needMPLS},
	{"mpls_bos", "mpls_bos", "mpls_bos", 1, false, formDecimal, needMPLS},
	{"pbb_isid", "pbb_isid", "pbb_isid", 24, true, formHex, needPBB},
	{"tunnel_id", "tun_id", "tun_id", 64, true, formHex, nil},
	{"ipv6_exthdr", "ipv6_exthdr", "ipv6_exthdr", 9, true, formHex, needIPv6},
}

// tcpFlags describes FieldTCPFlags.
var tcpFlags = fieldInfo{"tcp_flags", "tcp_flags", "tcp_flags", 12, true, formHex, needTCP}

// info describes a field, or is nil if it is not known here.
func (id FieldID) info() *fieldInfo {
	if id == FieldTCPFlags {
		return &tcpFlags
	}
	if id >= FieldInPort && id < fieldEnd {
		return &fields[id-FieldInPort]
	}
	return nil
}

// Class is the class of a field, such as ClassBasic.
func (id FieldID) Class() uint16 { return uint16(id >> 7) }

// Bits is the size of the value in bits, 0 if the field is not known here.
func (id FieldID) Bits() int {
	if f := id.info(); f != nil {
		return f.bits
	}
	return 0
}

// Maskable tells whether the field may have a mask (table 12 in section 7.2.3.7; EXT-109).
func (id FieldID) Maskable() bool {
	f := id.info()
	return f != nil && f.maskable
}

// String is the name in the specification in lower case, such as "eth_dst", which ovs-ofctl accepts.
func (id FieldID) String() string {
	if f := id.info(); f != nil {
		return f.name
	}
	return fmt.Sprintf("field %d of class %#04x", id&0x7f, id.Class())
}
