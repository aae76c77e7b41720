package pipeline

import (
	"encoding/binary"
	"net/netip"

	"headgate.dev/headgate/fabric/openflow"
)

// The types of frames (IEEE 802 Numbers, IANA) and the protocols (Protocol Numbers, IANA) that are parsed.
const (
	EtherVLAN          = 0x8100
	EtherProviderVLAN  = 0x88a8
	EtherIPv4          = 0x0800
	EtherARP           = 0x0806
	EtherIPv6          = 0x86dd
	EtherMPLS          = 0x8847
	EtherMPLSMulticast = 0x8848

	ProtocolICMP   = 1
	ProtocolTCP    = 6
	ProtocolUDP    = 17
	ProtocolICMPv6 = 58
	ProtocolSCTP   = 132

	// Types of ICMPv6 (RFC 4861, sections 4.3 and 4.4).
	NeighbourSolicitation  = 135
	NeighbourAdvertisement = 136
)

// EthernetHeader is the bytes of the header of a frame without a tag.
const EthernetHeader = 14

// VLANPresent is the bit of a VLAN id that says that there is a tag (OFPVID_PRESENT).
const VLANPresent = 0x1000

// Packet is a frame in a switch, with its fields.
type Packet struct {
	Data []byte
	Key  Key
	// L3 and L4 are where the headers of these layers begin in Data, 0 if the packet does not have them.
	L3, L4 int
	// Proto is the protocol of layer 4 of an IP packet.
	Proto uint8
	// Divided is set for a fragment, and Fragment for a later one, which has no header of layer 4.
	Divided, Fragment bool
	// SLL and TLL are where the addresses in options of neighbour discovery are in Data, or 0.
	SLL, TLL int
}

// NewPacket parses a frame that arrived at a port. The packet owns the bytes.
func NewPacket(data []byte, in openflow.PortNo) *Packet {
	p := &Packet{}
	p.Read(data, in)
	return p
}

// Read makes p a frame that arrived at a port, as NewPacket does.
func (p *Packet) Read(data []byte, in openflow.PortNo) {
	*p = Packet{Data: data}
	p.Key.setUint(openflow.FieldInPort, uint64(in))
	p.parse()
}

// Clone is an independent copy.
func (p *Packet) Clone() *Packet {
	c := *p
	c.Data = append([]byte(nil), p.Data...)
	return &c
}

// pipelineFields are those that are of no header.
var pipelineFields = []openflow.FieldID{openflow.FieldInPort, openflow.FieldMetadata, openflow.FieldTunnelID}

// parse sets the fields from the bytes, and keeps the pipeline's own. A header that is cut off has no fields. One tag is
// parsed, as Open vSwitch does by default (vlan-limit=1 in ovs-vswitchd.conf.db(5)): the Ethernet type is what follows it.
func (p *Packet) parse() {
	var k Key
	for _, id := range pipelineFields {
		k.Set(id, p.Key.Bytes(id))
	}
	p.Key = k
	p.L3, p.L4, p.Proto, p.Divided, p.Fragment, p.SLL, p.TLL = 0, 0, 0, false, false, 0, 0
	d := p.Data
	if len(d) < EthernetHeader {
		return
	}
	p.Key.Set(openflow.FieldEthDst, d[:6])
	p.Key.Set(openflow.FieldEthSrc, d[6:12])
	off := 12
	t := binary.BigEndian.Uint16(d[off:])
	if p.Tagged() {
		if len(d) < off+6 {
			return
		}
		tci := binary.BigEndian.Uint16(d[off+2:])
		p.Key.setUint(openflow.FieldVLANVID, uint64(tci&0xfff|VLANPresent))
		p.Key.setUint(openflow.FieldVLANPCP, uint64(tci>>13))
		off += 4
		t = binary.BigEndian.Uint16(d[off:])
	}
	p.Key.setUint(openflow.FieldEthType, uint64(t))
	off += 2
	switch t {
	case EtherIPv4:
		p.parseIPv4(off)
	case EtherIPv6:
		p.parseIPv6(off)
	case EtherARP:
		p.parseARP(off)
	case EtherMPLS, EtherMPLSMulticast:
		if len(d) >= off+4 {
			label := binary.BigEndian.Uint32(d[off:])
			p.Key.setUint(openflow.FieldMPLSLabel, uint64(label>>12))
			p.Key.setUint(openflow.FieldMPLSTC, uint64(label>>9&7))
			p.Key.setUint(openflow.FieldMPLSBoS, uint64(label>>8&1))
		}
	}
}

// Tagged reports whether the frame has a VLAN tag.
func (p *Packet) Tagged() bool {
	if len(p.Data) < EthernetHeader {
		return false
	}
	t := binary.BigEndian.Uint16(p.Data[12:])
	return t == EtherVLAN || t == EtherProviderVLAN
}

func (p *Packet) parseIPv4(off int) {
	d := p.Data[off:]
	if len(d) < 20 || d[0]>>4 != 4 {
		return
	}
	header := int(d[0]&15) * 4
	if header < 20 || len(d) < header {
		return
	}
	p.L3 = off
	p.Key.setUint(openflow.FieldIPDSCP, uint64(d[1]>>2))
	p.Key.setUint(openflow.FieldIPECN, uint64(d[1]&3))
	p.Key.setUint(openflow.FieldIPProto, uint64(d[9]))
	p.Key.Set(openflow.FieldIPv4Src, d[12:16])
	p.Key.Set(openflow.FieldIPv4Dst, d[16:20])
	p.Proto = d[9]
	p.Divided = binary.BigEndian.Uint16(d[6:])&0x3fff != 0
	p.Fragment = binary.BigEndian.Uint16(d[6:])&0x1fff != 0
	p.parseTransport(off + header)
}

// The extension headers of IPv6 that are passed over (RFC 8200, section 4).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

func (p *Packet) parseIPv6(off int) {
	d := p.Data[off:]
	if len(d) < 40 || d[0]>>4 != 6 {
		return
	}
	p.L3 = off
	first := binary.BigEndian.Uint32(d)
	p.Key.setUint(openflow.FieldIPDSCP, uint64(first>>22&0x3f))
	p.Key.setUint(openflow.FieldIPECN, uint64(first>>20&3))
	p.Key.setUint(openflow.FieldIPv6FLabel, uint64(first&0xfffff))
	p.Key.Set(openflow.FieldIPv6Src, d[8:24])
	p.Key.Set(openflow.FieldIPv6Dst, d[24:40])
	p.Proto = d[6]
	off += 40
	for p.Proto == extHopByHop || p.Proto == extRouting || p.Proto == extFragment || p.Proto == extDestination {
		d := p.Data[off:]
		if len(d) < 8 {
			return
		}
		size := 8 * (int(d[1]) + 1)
		if p.Proto == extFragment {
			size = 8
			p.Divided = binary.BigEndian.Uint16(d[2:])&0xfff9 != 0
			p.Fragment = binary.BigEndian.Uint16(d[2:])&0xfff8 != 0
		}
		if len(d) < size {
			return
		}
		p.Proto = d[0]
		off += size
	}
	p.Key.setUint(openflow.FieldIPProto, uint64(p.Proto))
	p.parseTransport(off)
}

// portFields are the fields of the ports of a protocol.
var portFields = map[uint8][2]openflow.FieldID{
	ProtocolTCP:  {openflow.FieldTCPSrc, openflow.FieldTCPDst},
	ProtocolUDP:  {openflow.FieldUDPSrc, openflow.FieldUDPDst},
	ProtocolSCTP: {openflow.FieldSCTPSrc, openflow.FieldSCTPDst},
}

// transportHeader is the least bytes of the header of a protocol.
var transportHeader = map[uint8]int{ProtocolTCP: 20, ProtocolUDP: 8, ProtocolSCTP: 12, ProtocolICMP: 4, ProtocolICMPv6: 4}

func (p *Packet) parseTransport(off int) {
	size := transportHeader[p.Proto]
	if p.Fragment || size == 0 || len(p.Data) < off+size {
		return
	}
	p.L4 = off
	d := p.Data[off:]
	switch p.Proto {
	case ProtocolICMP:
		p.Key.Set(openflow.FieldICMPv4Type, d[:1])
		p.Key.Set(openflow.FieldICMPv4Code, d[1:2])
	case ProtocolICMPv6:
		p.Key.Set(openflow.FieldICMPv6Type, d[:1])
		p.Key.Set(openflow.FieldICMPv6Code, d[1:2])
		p.parseNeighbour(off)
	default:
		f := portFields[p.Proto]
		p.Key.Set(f[0], d[:2])
		p.Key.Set(f[1], d[2:4])
		if p.Proto == ProtocolTCP {
			p.Key.setUint(openflow.FieldTCPFlags, uint64(binary.BigEndian.Uint16(d[12:])&0xfff))
		}
	}
}

// parseNeighbour parses neighbour discovery (RFC 4861, sections 4.3, 4.4 and 4.6.1).
func (p *Packet) parseNeighbour(off int) {
	d := p.Data[off:]
	if d[0] != NeighbourSolicitation && d[0] != NeighbourAdvertisement || len(d) < 24 {
		return
	}
	p.Key.Set(openflow.FieldIPv6NDTarget, d[8:24])
	for at := off + 24; len(p.Data) >= at+8; {
		o := p.Data[at:]
		size := 8 * int(o[1])
		if size == 0 || len(o) < size {
			return
		}
		switch {
		case o[0] == 1 && size == 8 && d[0] == NeighbourSolicitation:
			p.SLL = at + 2
			p.Key.Set(openflow.FieldIPv6NDSLL, o[2:8])
		case o[0] == 2 && size == 8 && d[0] == NeighbourAdvertisement:
			p.TLL = at + 2
			p.Key.Set(openflow.FieldIPv6NDTLL, o[2:8])
		}
		at += size
	}
}

// arpSize is the bytes of an ARP packet for Ethernet and IPv4 (RFC 826).
const arpSize = 28

func (p *Packet) parseARP(off int) {
	d := p.Data[off:]
	if len(d) < arpSize || binary.BigEndian.Uint16(d) != 1 || binary.BigEndian.Uint16(d[2:]) != EtherIPv4 || d[4] != 6 || d[5] != 4 {
		return
	}
	p.L3 = off
	if op := binary.BigEndian.Uint16(d[6:]); op <= 255 { // Open vSwitch matches no larger ones
		p.Key.setUint(openflow.FieldARPOp, uint64(op))
	}
	p.Key.Set(openflow.FieldARPSHA, d[8:14])
	p.Key.Set(openflow.FieldARPSPA, d[14:18])
	p.Key.Set(openflow.FieldARPTHA, d[18:24])
	p.Key.Set(openflow.FieldARPTPA, d[24:28])
}

// EthType is the type of the frame, after a tag if there is one.
func (p *Packet) EthType() uint16 { return uint16(p.Key.Uint(openflow.FieldEthType)) }

// Message is the bytes of layer 4 of an IP packet without the padding of the frame. The packet must have the layer.
func (p *Packet) Message() []byte {
	end := len(p.Data)
	if p.EthType() == EtherIPv4 {
		end = min(end, p.L3+int(binary.BigEndian.Uint16(p.Data[p.L3+2:])))
	} else {
		end = min(end, p.L3+40+int(binary.BigEndian.Uint16(p.Data[p.L3+4:])))
	}
	return p.Data[p.L4:max(end, p.L4+4)]
}

// Addr is a field with an IPv4 or IPv6 address. It is invalid for other fields.
func (p *Packet) Addr(id openflow.FieldID) netip.Addr {
	a, _ := netip.AddrFromSlice(p.Key.Bytes(id))
	return a
}
