package openflow

import "net/netip"

// The constructors of the match fields of OpenFlow 1.3 (section 7.2.3.7). Match.Check reports values that do not
// fit, and fields that need others.

// InPort matches the port on which a packet arrived.
func InPort(p PortNo) Field { return number(FieldInPort, uint64(p)) }

// InPhyPort matches the physical port under a logical port; it needs InPort.
func InPhyPort(p PortNo) Field { return number(FieldInPhyPort, uint64(p)) }

// Metadata matches what WriteMetadata has written in an earlier table.
func Metadata(v uint64) Field { return number(FieldMetadata, v) }

// MetadataMasked matches the bits of mask.
func MetadataMasked(v, mask uint64) Field { return numberMasked(FieldMetadata, v, mask) }

// EthDst matches the destination address of a frame.
func EthDst(m MAC) Field { return field(FieldEthDst, m[:], nil) }

// EthDstMasked matches the bits of mask.
func EthDstMasked(m, mask MAC) Field { return field(FieldEthDst, m[:], mask[:]) }

// EthSrc matches the source address of a frame.
func EthSrc(m MAC) Field { return field(FieldEthSrc, m[:], nil) }

// EthSrcMasked matches the bits of mask.
func EthSrcMasked(m, mask MAC) Field { return field(FieldEthSrc, m[:], mask[:]) }

// EthType matches the type of a frame's payload, after VLAN tags, such as 0x0800 for IPv4.
func EthType(t uint16) Field { return number(FieldEthType, uint64(t)) }

// vlanPresent is the bit of a VLAN id that says that the packet has a tag (OFPVID_PRESENT).
const vlanPresent = 0x1000

// VLAN matches packets with a VLAN tag of this id, 0 to 4095. In SetField it sets the id of the tag.
func VLAN(id uint16) Field { return number(FieldVLANVID, uint64(id)|vlanPresent) }

// AnyVLAN matches packets with a VLAN tag.
func AnyVLAN() Field { return numberMasked(FieldVLANVID, vlanPresent, vlanPresent) }

// NoVLAN matches packets without a VLAN tag.
func NoVLAN() Field { return number(FieldVLANVID, 0) }

// VLANMasked matches the bits of mask of vlan_vid as it is on the wire: bit 12 is set if the packet has a tag.
func VLANMasked(vid, mask uint16) Field {
	return numberMasked(FieldVLANVID, uint64(vid), uint64(mask))
}

// VLANPCP matches the priority of the VLAN tag, 0 to 7; it needs VLAN or AnyVLAN.
func VLANPCP(v uint8) Field { return number(FieldVLANPCP, uint64(v)) }

// IPDSCP matches the differentiated services code point, 0 to 63; it needs EthType of IPv4 or IPv6.
func IPDSCP(v uint8) Field { return number(FieldIPDSCP, uint64(v)) }

// IPECN matches the ECN bits, 0 to 3; it needs EthType of IPv4 or IPv6.
func IPECN(v uint8) Field { return number(FieldIPECN, uint64(v)) }

// IPProto matches the protocol over IP, such as 6 for TCP; it needs EthType of IPv4 or IPv6.
func IPProto(v uint8) Field { return number(FieldIPProto, uint64(v)) }

// IPv4Src matches source addresses in a prefix; it needs EthType(0x0800).
func IPv4Src(p netip.Prefix) Field { return prefix(FieldIPv4Src, p) }

// IPv4Dst matches destination addresses in a prefix; it needs EthType(0x0800).
func IPv4Dst(p netip.Prefix) Field { return prefix(FieldIPv4Dst, p) }

// TCPSrc matches the source port; it needs IPProto(6).
func TCPSrc(port uint16) Field { return number(FieldTCPSrc, uint64(port)) }

// TCPDst matches the destination port; it needs IPProto(6).
func TCPDst(port uint16) Field { return number(FieldTCPDst, uint64(port)) }

// UDPSrc matches the source port; it needs IPProto(17).
func UDPSrc(port uint16) Field { return number(FieldUDPSrc, uint64(port)) }

// UDPDst matches the destination port; it needs IPProto(17).
func UDPDst(port uint16) Field { return number(FieldUDPDst, uint64(port)) }

// SCTPSrc matches the source port; it needs IPProto(132).
func SCTPSrc(port uint16) Field { return number(FieldSCTPSrc, uint64(port)) }

// SCTPDst matches the destination port; it needs IPProto(132).
func SCTPDst(port uint16) Field { return number(FieldSCTPDst, uint64(port)) }

// ICMPv4Type matches the type of an ICMP message; it needs EthType(0x0800) and IPProto(1).
func ICMPv4Type(v uint8) Field { return number(FieldICMPv4Type, uint64(v)) }

// ICMPv4Code matches the code of an ICMP message; it needs EthType(0x0800) and IPProto(1).
func ICMPv4Code(v uint8) Field { return number(FieldICMPv4Code, uint64(v)) }

// ARPOp matches the operation, 1 for a request and 2 for a reply; it needs EthType(0x0806).
func ARPOp(v uint16) Field { return number(FieldARPOp, uint64(v)) }

// ARPSPA matches the sender's IPv4 address; it needs EthType(0x0806).
func ARPSPA(p netip.Prefix) Field { return prefix(FieldARPSPA, p) }

// ARPTPA matches the target's IPv4 address; it needs EthType(0x0806).
func ARPTPA(p netip.Prefix) Field { return prefix(FieldARPTPA, p) }

// ARPSHA matches the sender's Ethernet address; it needs EthType(0x0806).
func ARPSHA(m MAC) Field { return field(FieldARPSHA, m[:], nil) }

// ARPTHA matches the target's Ethernet address; it needs EthType(0x0806).
func ARPTHA(m MAC) Field { return field(FieldARPTHA, m[:], nil) }

// IPv6Src matches source addresses in a prefix; it needs EthType(0x86dd).
func IPv6Src(p netip.Prefix) Field { return prefix(FieldIPv6Src, p) }

// IPv6Dst matches destination addresses in a prefix; it needs EthType(0x86dd).
func IPv6Dst(p netip.Prefix) Field { return prefix(FieldIPv6Dst, p) }

// IPv6FLabel matches the flow label, 20 bits; it needs EthType(0x86dd).
func IPv6FLabel(v uint32) Field { return number(FieldIPv6FLabel, uint64(v)) }

// IPv6FLabelMasked matches the bits of mask.
func IPv6FLabelMasked(v, mask uint32) Field {
	return numberMasked(FieldIPv6FLabel, uint64(v), uint64(mask))
}

// ICMPv6Type matches the type of an ICMPv6 message; it needs EthType(0x86dd) and IPProto(58).
func ICMPv6Type(v uint8) Field { return number(FieldICMPv6Type, uint64(v)) }

// ICMPv6Code matches the code of an ICMPv6 message; it needs EthType(0x86dd) and IPProto(58).
func ICMPv6Code(v uint8) Field { return number(FieldICMPv6Code, uint64(v)) }

// IPv6NDTarget matches the target of neighbour discovery; it needs ICMPv6Type(135) or (136).
func IPv6NDTarget(a netip.Addr) Field {
	return field(FieldIPv6NDTarget, addrBytes(FieldIPv6NDTarget, a), nil)
}

// IPv6NDSLL matches the source's link-layer address; it needs ICMPv6Type(135).
func IPv6NDSLL(m MAC) Field { return field(FieldIPv6NDSLL, m[:], nil) }

// IPv6NDTLL matches the target's link-layer address; it needs ICMPv6Type(136).
func IPv6NDTLL(m MAC) Field { return field(FieldIPv6NDTLL, m[:], nil) }

// MPLSLabel matches the outer label, 20 bits; it needs EthType(0x8847) or (0x8848).
func MPLSLabel(v uint32) Field { return number(FieldMPLSLabel, uint64(v)) }

// MPLSTC matches the traffic class of the outer label, 0 to 7; it needs EthType(0x8847) or (0x8848).
func MPLSTC(v uint8) Field { return number(FieldMPLSTC, uint64(v)) }

// MPLSBoS matches the bottom-of-stack bit of the outer label; it needs EthType(0x8847) or (0x8848).
func MPLSBoS(v uint8) Field { return number(FieldMPLSBoS, uint64(v)) }

// PBBISID matches the service instance of a provider backbone bridge, 24 bits; it needs EthType(0x88e7).
func PBBISID(v uint32) Field { return number(FieldPBBISID, uint64(v)) }

// PBBISIDMasked matches the bits of mask.
func PBBISIDMasked(v, mask uint32) Field {
	return numberMasked(FieldPBBISID, uint64(v), uint64(mask))
}

// TunnelID matches the metadata of a logical port, such as a VXLAN network identifier.
func TunnelID(v uint64) Field { return number(FieldTunnelID, v) }

// TunnelIDMasked matches the bits of mask.
func TunnelIDMasked(v, mask uint64) Field { return numberMasked(FieldTunnelID, v, mask) }

// IPv6ExtHdr matches the extension headers of a packet by the bits of enum ofp_ipv6exthdr_flags, 9 bits; it needs
// EthType(0x86dd).
func IPv6ExtHdr(v uint16) Field { return number(FieldIPv6ExtHdr, uint64(v)) }

// IPv6ExtHdrMasked matches the bits of mask.
func IPv6ExtHdrMasked(v, mask uint16) Field {
	return numberMasked(FieldIPv6ExtHdr, uint64(v), uint64(mask))
}

// prefix makes a field of an address with a mask, or without one if the prefix is a single address. A prefix that
// is not valid, or is of the other family, gives a field without a value, which Append and Match.Check refuse.
func prefix(id FieldID, p netip.Prefix) Field {
	p = p.Masked()
	b := addrBytes(id, p.Addr())
	if b == nil || p.IsSingleIP() {
		return field(id, b, nil)
	}
	mask := make([]byte, len(b))
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return field(id, b, mask)
}

// addrBytes are the bytes of an address if it is of the field's family, or nil.
func addrBytes(id FieldID, a netip.Addr) []byte {
	if a.BitLen() != id.info().bits {
		return nil
	}
	return a.AsSlice()
}

// TCPFlags matches TCP segments whose flags under a mask have a value, such as 0x002 under 0x012 for a SYN without an ACK (FieldTCPFlags); it needs
// IPProto(6).
func TCPFlags(v, mask uint16) Field { return numberMasked(FieldTCPFlags, uint64(v), uint64(mask)) }
