package live

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// segment is the first segment of a TCP connection, in the frame of a host.
type segment struct {
	frame
	fabric.Connection
}

// parseSegment reads a frame with a TCP segment that is no fragment. ok is false for another.
func parseSegment(data []byte) (s segment, ok bool) {
	p := pipeline.NewPacket(data, 0)
	if p.Proto != pipeline.ProtocolTCP || p.L4 == 0 || p.Divided {
		return s, false
	}
	s.data, s.dst, s.src = data, fabric.MAC(data[:6]), fabric.MAC(data[6:12])
	if p.Tagged() {
		s.vlan = binary.BigEndian.Uint16(data[14:]) & 0xfff
	}
	from, to := addresses(p)
	s.Client = netip.AddrPortFrom(from, binary.BigEndian.Uint16(data[p.L4:]))
	s.Server = netip.AddrPortFrom(to, binary.BigEndian.Uint16(data[p.L4+2:]))
	return s, true
}

// addresses returns the sender and the receiver of an IP packet.
func addresses(p *pipeline.Packet) (from, to netip.Addr) {
	d := p.Data[p.L3:]
	if p.EthType() == pipeline.EtherIPv4 {
		return address(d[12:16]), address(d[16:20])
	}
	return address(d[8:24]), address(d[24:40])
}

// checksumAt is where the checksum is in the headers of protocols that have one over the pseudo-header.
var checksumAt = map[uint8]int{pipeline.ProtocolTCP: 16, pipeline.ProtocolUDP: 6}

// finished returns a frame with the checksum of TCP or UDP. The frame of a host whose interface computes checksums can reach the switch before it was
// computed, as it does over a veth device: the field then has the sum of the pseudo-header alone (Linux, CHECKSUM_PARTIAL in skbuff.h), and no receiver
// takes what the controller sends on. Another checksum is not touched, right or wrong.
func finished(data []byte) []byte {
	p := pipeline.NewPacket(data, 0)
	at, has := checksumAt[p.Proto]
	if !has || p.L4 == 0 || p.Divided {
		return data
	}
	message := p.Message()
	if len(message) < at+2 {
		return data
	}
	from, to := addresses(p)
	pseudo := sum(uint32(len(message))+uint32(p.Proto), from.AsSlice(), to.AsSlice())
	if binary.BigEndian.Uint16(message[at:]) != pseudo {
		return data
	}
	data = slices.Clone(data)
	message = data[p.L4 : p.L4+len(message)]
	binary.BigEndian.PutUint16(message[at:], 0)
	check := ^sum(uint32(pseudo), message)
	if check == 0 && p.Proto == pipeline.ProtocolUDP { // 0 says that there is none (RFC 768)
		check = 0xffff
	}
	binary.BigEndian.PutUint16(message[at:], check)
	return data
}

// sum returns the sum of 16-bit words in one's complement (RFC 1071), of parts of which all but the last have an even length.
func sum(s uint32, parts ...[]byte) uint16 {
	for _, b := range parts {
		for ; len(b) >= 2; b = b[2:] {
			s += uint32(b[0])<<8 | uint32(b[1])
		}
		if len(b) == 1 {
			s += uint32(b[0]) << 8
		}
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
