package oftest

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// setField sets a field of the frame, with the checksums that cover it. A field that the frame does not have is left
// out. The checksum of SCTP is not updated.
func (p *packet) setField(f openflow.Field) {
	v := f.Value()
	switch id := f.ID(); id {
	case openflow.FieldMetadata, openflow.FieldTunnelID:
		p.key.set(id, v)
		return
	case openflow.FieldEthDst, openflow.FieldEthSrc:
		if len(p.data) >= ethernetHeader {
			copy(p.data[6*int(id-openflow.FieldEthDst):], v)
		}
	case openflow.FieldVLANVID, openflow.FieldVLANPCP:
		p.setVLAN(id, uint16(f.Uint()))
	case openflow.FieldIPDSCP:
		p.setTrafficClass(uint8(v[0])<<2, 0xfc)
	case openflow.FieldIPECN:
		p.setTrafficClass(uint8(v[0]), 3)
	case openflow.FieldIPv4Src, openflow.FieldIPv4Dst:
		if p.ethType() == typeIPv4 && p.l3 > 0 {
			at := p.l3 + 12 + 4*int(id-openflow.FieldIPv4Src)
			p.transportSum(at, v)
			sumOver(p.data[p.l3+10:], p.data[at:at+4], v)
			copy(p.data[at:], v)
		}
	case openflow.FieldIPv6Src, openflow.FieldIPv6Dst:
		if p.ethType() == typeIPv6 && p.l3 > 0 {
			p.overwrite(p.l3+8+16*int(id-openflow.FieldIPv6Src), v)
		}
	case openflow.FieldIPv6FLabel:
		if p.ethType() == typeIPv6 && p.l3 > 0 {
			first := binary.BigEndian.Uint32(p.data[p.l3:])
			binary.BigEndian.PutUint32(p.data[p.l3:], first&^0xfffff|uint32(f.Uint()))
		}
	case openflow.FieldARPOp, openflow.FieldARPSPA, openflow.FieldARPTPA, openflow.FieldARPSHA, openflow.FieldARPTHA:
		if p.ethType() == typeARP && p.l3 > 0 {
			at := map[openflow.FieldID]int{openflow.FieldARPOp: 6, openflow.FieldARPSHA: 8, openflow.FieldARPSPA: 14, openflow.FieldARPTHA: 18, openflow.FieldARPTPA: 24}
			copy(p.data[p.l3+at[id]:], v)
		}
	default:
		if at := p.transportField(id); at > 0 {
			p.overwrite(at, v)
		}
	}
	p.parse()
}

// transportField is the offset of a field of layer 4, or 0 if the packet does not have it.
func (p *packet) transportField(id openflow.FieldID) int {
	if p.l4 == 0 {
		return 0
	}
	for proto, f := range portFields {
		if p.proto == proto && (id == f[0] || id == f[1]) {
			return p.l4 + 2*int(id-f[0])
		}
	}
	four, six := p.proto == protoICMP, p.proto == protoICMPv6
	neighbour := six && len(p.data) >= p.l4+24 && (p.data[p.l4] == typeSolicitation || p.data[p.l4] == typeAdvertisement)
	switch {
	case id == openflow.FieldICMPv4Type && four, id == openflow.FieldICMPv6Type && six:
		return p.l4
	case id == openflow.FieldICMPv4Code && four, id == openflow.FieldICMPv6Code && six:
		return p.l4 + 1
	case id == openflow.FieldIPv6NDTarget && neighbour:
		return p.l4 + 8
	case id == openflow.FieldIPv6NDSLL:
		return p.sll
	case id == openflow.FieldIPv6NDTLL:
		return p.tll
	}
	return 0
}

// overwrite sets bytes that the checksum of layer 4 covers.
func (p *packet) overwrite(at int, v []byte) {
	p.transportSum(at, v)
	copy(p.data[at:], v)
}

// transportSum updates the checksum of layer 4 for bytes that change to v.
func (p *packet) transportSum(at int, v []byte) {
	if p.l4 == 0 {
		return
	}
	sum := map[uint8]int{protoTCP: 16, protoUDP: 6, protoICMP: 2, protoICMPv6: 2}[p.proto]
	pseudo := at < p.l4 // an address
	if sum == 0 || len(p.data) < p.l4+sum+2 || pseudo && p.proto == protoICMP {
		return
	}
	s := p.data[p.l4+sum:]
	if p.proto == protoUDP && binary.BigEndian.Uint16(s) == 0 {
		return // none (RFC 768)
	}
	old := p.data[at : at+len(v)]
	if at%2 != p.l4%2 { // checksums are of 16-bit words
		old, v = p.data[at-1:at+1], append([]byte{p.data[at-1]}, v...)
	} else if len(v)%2 == 1 {
		old, v = p.data[at:at+2], append(append([]byte(nil), v...), p.data[at+1])
	}
	sumOver(s, old, v)
	if p.proto == protoUDP && binary.BigEndian.Uint16(s) == 0 {
		binary.BigEndian.PutUint16(s, 0xffff)
	}
}

// sumOver updates the Internet checksum at the begin of sum for bytes that change from old to v (RFC 1624, equation 3).
func sumOver(sum, old, v []byte) {
	s := uint32(^binary.BigEndian.Uint16(sum))
	for i := 0; i+1 < len(v); i += 2 {
		s += uint32(^binary.BigEndian.Uint16(old[i:])) + uint32(binary.BigEndian.Uint16(v[i:]))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	binary.BigEndian.PutUint16(sum, ^uint16(s))
}

// setTrafficClass sets the bits of mask in the DSCP and ECN byte.
func (p *packet) setTrafficClass(v, mask uint8) {
	switch {
	case p.l3 == 0:
	case p.ethType() == typeIPv4:
		b := p.data[p.l3 : p.l3+2]
		set := []byte{b[0], b[1]&^mask | v&mask}
		sumOver(p.data[p.l3+10:], b, set)
		copy(b, set)
	case p.ethType() == typeIPv6:
		first := binary.BigEndian.Uint32(p.data[p.l3:])
		class := uint8(first>>20)&^mask | v&mask
		binary.BigEndian.PutUint32(p.data[p.l3:], first&^(0xff<<20)|uint32(class)<<20)
	}
}

// ttl is the TTL or the hop limit, or false if the packet has none.
func (p *packet) ttl() (uint8, bool) {
	switch {
	case p.l3 == 0:
	case p.ethType() == typeIPv4:
		return p.data[p.l3+8], true
	case p.ethType() == typeIPv6:
		return p.data[p.l3+7], true
	}
	return 0, false
}

// setTTL sets the TTL or the hop limit, if the packet has one.
func (p *packet) setTTL(v uint8) {
	switch {
	case p.l3 == 0:
	case p.ethType() == typeIPv4:
		b := p.data[p.l3+8 : p.l3+10]
		set := []byte{v, b[1]}
		sumOver(p.data[p.l3+10:], b, set)
		copy(b, set)
	case p.ethType() == typeIPv6:
		p.data[p.l3+7] = v
	}
}

// pushVLAN adds a tag with id and priority 0. Section 5.12.1 has those of the outermost tag; Open vSwitch does not copy
// them.
func (p *packet) pushVLAN(t uint16) {
	if len(p.data) < ethernetHeader {
		return
	}
	d := make([]byte, 0, len(p.data)+4)
	d = append(d, p.data[:12]...)
	d = binary.BigEndian.AppendUint16(d, t)
	d = append(d, 0, 0)
	p.data = append(d, p.data[12:]...)
	p.parse()
}

// popVLAN removes the outermost tag, if there is one.
func (p *packet) popVLAN() {
	if !p.tagged() || len(p.data) < ethernetHeader+4 {
		return
	}
	p.data = append(append([]byte(nil), p.data[:12]...), p.data[16:]...)
	p.parse()
}

func (p *packet) setVLAN(id openflow.FieldID, v uint16) {
	if !p.tagged() || len(p.data) < ethernetHeader+4 {
		return
	}
	tci := binary.BigEndian.Uint16(p.data[14:])
	if id == openflow.FieldVLANVID {
		tci = tci&0xf000 | v&0xfff
	} else {
		tci = tci&0x1fff | v<<13
	}
	binary.BigEndian.PutUint16(p.data[14:], tci)
}
