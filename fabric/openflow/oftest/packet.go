package oftest

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// The types of frames and protocols that are parsed.
const (
	typeVLAN         = 0x8100
	typeProviderVLAN = 0x88a8
	typeIPv4         = 0x0800
	typeARP          = 0x0806
	typeIPv6         = 0x86dd
	typeMPLS         = 0x8847
	typeMPLSM        = 0x8848

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132

	typeSolicitation  = 135 // ICMPv6
	typeAdvertisement = 136
)

const ethernetHeader = 14 // bytes, without a tag

// vlanPresent is the bit of a VLAN id that says that there is a tag (OFPVID_PRESENT).
const vlanPresent = 0x1000

// packet is a frame in a switch, with its fields.
type packet struct {
	data []byte
	key  key
	// offsets of headers in data, 0 if the packet does not have them
	l3, l4   int
	proto    uint8
	divided  bool // a fragment
	fragment bool // a later one, which has no header of layer 4
	sll, tll int  // the addresses in options of neighbour discovery
}

// newPacket parses a frame that arrived at a port. The packet owns the bytes.
func newPacket(data []byte, in openflow.PortNo) *packet {
	p := &packet{data: data}
	p.key.setUint(openflow.FieldInPort, uint64(in))
	p.parse()
	return p
}

// clone is an independent copy.
func (p *packet) clone() *packet {
	c := *p
	c.data = append([]byte(nil), p.data...)
	return &c
}

// pipelineFields are those that are of no header.
var pipelineFields = []openflow.FieldID{openflow.FieldInPort, openflow.FieldMetadata, openflow.FieldTunnelID}

// parse sets the fields from the bytes, and keeps the pipeline's own. A header that is cut off has no fields. One tag is
// parsed, as Open vSwitch does by default (vlan-limit=1 in ovs-vswitchd.conf.db(5)): the Ethernet type is what follows it.
func (p *packet) parse() {
	var k key
	for _, id := range pipelineFields {
		k.set(id, p.key.bytes(id))
	}
	p.key = k
	p.l3, p.l4, p.proto, p.divided, p.fragment, p.sll, p.tll = 0, 0, 0, false, false, 0, 0
	d := p.data
	if len(d) < ethernetHeader {
		return
	}
	p.key.set(openflow.FieldEthDst, d[:6])
	p.key.set(openflow.FieldEthSrc, d[6:12])
	off := 12
	t := binary.BigEndian.Uint16(d[off:])
	if p.tagged() {
		if len(d) < off+6 {
			return
		}
		tci := binary.BigEndian.Uint16(d[off+2:])
		p.key.setUint(openflow.FieldVLANVID, uint64(tci&0xfff|vlanPresent))
		p.key.setUint(openflow.FieldVLANPCP, uint64(tci>>13))
		off += 4
		t = binary.BigEndian.Uint16(d[off:])
	}
	p.key.setUint(openflow.FieldEthType, uint64(t))
	off += 2
	switch t {
	case typeIPv4:
		p.parseIPv4(off)
	case typeIPv6:
		p.parseIPv6(off)
	case typeARP:
		p.parseARP(off)
	case typeMPLS, typeMPLSM:
		if len(d) >= off+4 {
			label := binary.BigEndian.Uint32(d[off:])
			p.key.setUint(openflow.FieldMPLSLabel, uint64(label>>12))
			p.key.setUint(openflow.FieldMPLSTC, uint64(label>>9&7))
			p.key.setUint(openflow.FieldMPLSBoS, uint64(label>>8&1))
		}
	}
}

// tagged reports whether the frame has a VLAN tag.
func (p *packet) tagged() bool {
	if len(p.data) < ethernetHeader {
		return false
	}
	t := binary.BigEndian.Uint16(p.data[12:])
	return t == typeVLAN || t == typeProviderVLAN
}

func (p *packet) parseIPv4(off int) {
	d := p.data[off:]
	if len(d) < 20 || d[0]>>4 != 4 {
		return
	}
	header := int(d[0]&15) * 4
	if header < 20 || len(d) < header {
		return
	}
	p.l3 = off
	p.key.setUint(openflow.FieldIPDSCP, uint64(d[1]>>2))
	p.key.setUint(openflow.FieldIPECN, uint64(d[1]&3))
	p.key.setUint(openflow.FieldIPProto, uint64(d[9]))
	p.key.set(openflow.FieldIPv4Src, d[12:16])
	p.key.set(openflow.FieldIPv4Dst, d[16:20])
	p.proto = d[9]
	p.divided = binary.BigEndian.Uint16(d[6:])&0x3fff != 0
	p.fragment = binary.BigEndian.Uint16(d[6:])&0x1fff != 0
	p.parseTransport(off + header)
}

// The extension headers of IPv6 that are passed over (RFC 8200, section 4).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

func (p *packet) parseIPv6(off int) {
	d := p.data[off:]
	if len(d) < 40 || d[0]>>4 != 6 {
		return
	}
	p.l3 = off
	first := binary.BigEndian.Uint32(d)
	p.key.setUint(openflow.FieldIPDSCP, uint64(first>>22&0x3f))
	p.key.setUint(openflow.FieldIPECN, uint64(first>>20&3))
	p.key.setUint(openflow.FieldIPv6FLabel, uint64(first&0xfffff))
	p.key.set(openflow.FieldIPv6Src, d[8:24])
	p.key.set(openflow.FieldIPv6Dst, d[24:40])
	p.proto = d[6]
	off += 40
	for p.proto == extHopByHop || p.proto == extRouting || p.proto == extFragment || p.proto == extDestination {
		d := p.data[off:]
		if len(d) < 8 {
			return
		}
		size := 8 * (int(d[1]) + 1)
		if p.proto == extFragment {
			size = 8
			p.divided = binary.BigEndian.Uint16(d[2:])&0xfff9 != 0
			p.fragment = binary.BigEndian.Uint16(d[2:])&0xfff8 != 0
		}
		if len(d) < size {
			return
		}
		p.proto = d[0]
		off += size
	}
	p.key.setUint(openflow.FieldIPProto, uint64(p.proto))
	p.parseTransport(off)
}

// portFields are the fields of the ports of a protocol.
var portFields = map[uint8][2]openflow.FieldID{
	protoTCP:  {openflow.FieldTCPSrc, openflow.FieldTCPDst},
	protoUDP:  {openflow.FieldUDPSrc, openflow.FieldUDPDst},
	protoSCTP: {openflow.FieldSCTPSrc, openflow.FieldSCTPDst},
}

// transportHeader is the least bytes of the header of a protocol.
var transportHeader = map[uint8]int{protoTCP: 20, protoUDP: 8, protoSCTP: 12, protoICMP: 4, protoICMPv6: 4}

func (p *packet) parseTransport(off int) {
	size := transportHeader[p.proto]
	if p.fragment || size == 0 || len(p.data) < off+size {
		return
	}
	p.l4 = off
	d := p.data[off:]
	switch p.proto {
	case protoICMP:
		p.key.set(openflow.FieldICMPv4Type, d[:1])
		p.key.set(openflow.FieldICMPv4Code, d[1:2])
	case protoICMPv6:
		p.key.set(openflow.FieldICMPv6Type, d[:1])
		p.key.set(openflow.FieldICMPv6Code, d[1:2])
		p.parseNeighbour(off)
	default:
		f := portFields[p.proto]
		p.key.set(f[0], d[:2])
		p.key.set(f[1], d[2:4])
	}
}

// parseNeighbour parses neighbour discovery (RFC 4861, sections 4.3, 4.4 and 4.6.1).
func (p *packet) parseNeighbour(off int) {
	d := p.data[off:]
	if d[0] != typeSolicitation && d[0] != typeAdvertisement || len(d) < 24 {
		return
	}
	p.key.set(openflow.FieldIPv6NDTarget, d[8:24])
	for at := off + 24; len(p.data) >= at+8; {
		o := p.data[at:]
		size := 8 * int(o[1])
		if size == 0 || len(o) < size {
			return
		}
		switch {
		case o[0] == 1 && size == 8 && d[0] == typeSolicitation:
			p.sll = at + 2
			p.key.set(openflow.FieldIPv6NDSLL, o[2:8])
		case o[0] == 2 && size == 8 && d[0] == typeAdvertisement:
			p.tll = at + 2
			p.key.set(openflow.FieldIPv6NDTLL, o[2:8])
		}
		at += size
	}
}

// arpSize is the bytes of an ARP packet for Ethernet and IPv4 (RFC 826).
const arpSize = 28

func (p *packet) parseARP(off int) {
	d := p.data[off:]
	if len(d) < arpSize || binary.BigEndian.Uint16(d) != 1 || binary.BigEndian.Uint16(d[2:]) != typeIPv4 || d[4] != 6 || d[5] != 4 {
		return
	}
	p.l3 = off
	if op := binary.BigEndian.Uint16(d[6:]); op <= 255 { // Open vSwitch matches no larger ones
		p.key.setUint(openflow.FieldARPOp, uint64(op))
	}
	p.key.set(openflow.FieldARPSHA, d[8:14])
	p.key.set(openflow.FieldARPSPA, d[14:18])
	p.key.set(openflow.FieldARPTHA, d[18:24])
	p.key.set(openflow.FieldARPTPA, d[24:28])
}

func (p *packet) ethType() uint16 { return uint16(p.key.uint(openflow.FieldEthType)) }
