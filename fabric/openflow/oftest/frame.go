package oftest

import (
	"encoding/binary"
	"net/netip"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Frames that hosts send: without the checksum of Ethernet, and padded to 60 bytes as a network card does.

const leastFrame = 60

// Broadcast is the Ethernet address of all hosts.
var Broadcast = openflow.MAC{255, 255, 255, 255, 255, 255}

func ethernet(dst, src openflow.MAC, t uint16, payload []byte) []byte {
	b := make([]byte, 0, max(leastFrame, pipeline.EthernetHeader+len(payload)))
	b = append(append(b, dst[:]...), src[:]...)
	b = binary.BigEndian.AppendUint16(b, t)
	b = append(b, payload...)
	for len(b) < leastFrame {
		b = append(b, 0)
	}
	return b
}

// The operations of ARP (RFC 826).
const (
	arpRequest = 1
	arpReply   = 2
)

func arp(op uint16, sha openflow.MAC, spa netip.Addr, tha openflow.MAC, tpa netip.Addr) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0, 1, 8, 0, 6, 4}, op)
	b = append(append(b, sha[:]...), spa.AsSlice()...)
	return append(append(b, tha[:]...), tpa.AsSlice()...)
}

// internetSum is the checksum of RFC 1071 over some bytes after a sum.
func internetSum(sum uint32, b []byte) uint16 {
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// pseudo is the sum of the pseudo header of layer 4 (RFC 768; RFC 8200, section 8.1).
func pseudo(src, dst netip.Addr, proto uint8, size int) uint32 {
	b := append(src.AsSlice(), dst.AsSlice()...)
	return uint32(^internetSum(0, b)) + uint32(proto) + uint32(size)
}

// ipPacket is an IPv4 or IPv6 packet (RFC 791, RFC 8200), by the family of the addresses.
func ipPacket(src, dst netip.Addr, proto, ttl uint8, payload []byte) []byte {
	if src.Is4() {
		b := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(payload)))
		b = append(b, 0, 0, 0, 0, ttl, proto, 0, 0)
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		binary.BigEndian.PutUint16(b[10:], internetSum(0, b))
		return append(b, payload...)
	}
	b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(payload)))
	b = append(b, proto, ttl)
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	return append(b, payload...)
}

func udpPacket(src, dst netip.Addr, from, to uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(append(b, 0, 0), payload...)
	sum := internetSum(pseudo(src, dst, pipeline.ProtocolUDP, len(b)), b)
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[6:], sum)
	return ipPacket(src, dst, pipeline.ProtocolUDP, 64, b)
}

// icmpPacket is an ICMP or ICMPv6 message of a type, with what follows its checksum.
func icmpPacket(src, dst netip.Addr, typ, ttl uint8, body []byte) []byte {
	b := append([]byte{typ, 0, 0, 0}, body...)
	proto, sum := uint8(pipeline.ProtocolICMP), uint32(0)
	if src.Is6() {
		proto, sum = pipeline.ProtocolICMPv6, pseudo(src, dst, pipeline.ProtocolICMPv6, len(b))
	}
	binary.BigEndian.PutUint16(b[2:], internetSum(sum, b))
	return ipPacket(src, dst, proto, ttl, b)
}

// ethTypeOf is the Ethernet type of packets between addresses.
func ethTypeOf(a netip.Addr) uint16 {
	if a.Is4() {
		return pipeline.EtherIPv4
	}
	return pipeline.EtherIPv6
}

// solicited is the multicast address of neighbour solicitations for an address, and its Ethernet address (RFC 4291,
// section 2.7.1; RFC 2464, section 7).
func solicited(a netip.Addr) (netip.Addr, openflow.MAC) {
	b := a.As16()
	group := netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
	return group, openflow.MAC{0x33, 0x33, 0xff, b[13], b[14], b[15]}
}

// UDPFrame returns a frame with a UDP datagram whose payload fills it to size bytes, at least 60.
func UDPFrame(src, dst openflow.MAC, from, to netip.AddrPort, size int) []byte {
	header := pipeline.EthernetHeader + 20 + 8
	if from.Addr().Is6() {
		header += 20
	}
	payload := make([]byte, max(size-header, 0))
	return ethernet(dst, src, ethTypeOf(from.Addr()), udpPacket(from.Addr(), to.Addr(), from.Port(), to.Port(), payload))
}
