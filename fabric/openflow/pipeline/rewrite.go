package pipeline

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// SetField sets a field of the frame, with the checksums that cover it. A field that the frame does not have is left
// out. The checksum of SCTP is not updated.
func (p *Packet) SetField(f openflow.Field) {
	v := f.Value()
	switch id := f.ID(); id {
	case openflow.FieldMetadata, openflow.FieldTunnelID:
		p.Key.Set(id, v)
		return
	case openflow.FieldEthDst, openflow.FieldEthSrc:
		if len(p.Data) >= EthernetHeader {
			copy(p.Data[6*int(id-openflow.FieldEthDst):], v)
		}
	case openflow.FieldVLANVID, openflow.FieldVLANPCP:
		p.setVLAN(id, uint16(f.Uint()))
	case openflow.FieldIPDSCP:
		p.setTrafficClass(uint8(v[0])<<2, 0xfc)
	case openflow.FieldIPECN:
		p.setTrafficClass(uint8(v[0]), 3)
	case openflow.FieldIPv4Src, openflow.FieldIPv4Dst:
		if p.EthType() == EtherIPv4 && p.L3 > 0 {
			at := p.L3 + 12 + 4*int(id-openflow.FieldIPv4Src)
			p.transportSum(at, v)
			sumOver(p.Data[p.L3+10:], p.Data[at:at+4], v)
			copy(p.Data[at:], v)
		}
	case openflow.FieldIPv6Src, openflow.FieldIPv6Dst:
		if p.EthType() == EtherIPv6 && p.L3 > 0 {
			p.overwrite(p.L3+8+16*int(id-openflow.FieldIPv6Src), v)
		}
	case openflow.FieldIPv6FLabel:
		if p.EthType() == EtherIPv6 && p.L3 > 0 {
			first := binary.BigEndian.Uint32(p.Data[p.L3:])
			binary.BigEndian.PutUint32(p.Data[p.L3:], first&^0xfffff|uint32(f.Uint()))
		}
	case openflow.FieldARPOp, openflow.FieldARPSPA, openflow.FieldARPTPA, openflow.FieldARPSHA, openflow.FieldARPTHA:
		if p.EthType() == EtherARP && p.L3 > 0 {
			at := map[openflow.FieldID]int{openflow.FieldARPOp: 6, openflow.FieldARPSHA: 8, openflow.FieldARPSPA: 14, openflow.FieldARPTHA: 18, openflow.FieldARPTPA: 24}
			copy(p.Data[p.L3+at[id]:], v)
		}
	default:
		if at := p.transportField(id); at > 0 {
			p.overwrite(at, v)
		}
	}
	p.parse()
}

// transportField is the offset of a field of layer 4, or 0 if the packet does not have it.
func (p *Packet) transportField(id openflow.FieldID) int {
	if p.L4 == 0 {
		return 0
	}
	for proto, f := range portFields {
		if p.Proto == proto && (id == f[0] || id == f[1]) {
			return p.L4 + 2*int(id-f[0])
		}
	}
	four, six := p.Proto == ProtocolICMP, p.Proto == ProtocolICMPv6
	neighbour := six && len(p.Data) >= p.L4+24 && (p.Data[p.L4] == NeighbourSolicitation || p.Data[p.L4] == NeighbourAdvertisement)
	switch {
	case id == openflow.FieldICMPv4Type && four, id == openflow.FieldICMPv6Type && six:
		return p.L4
	case id == openflow.FieldICMPv4Code && four, id == openflow.FieldICMPv6Code && six:
		return p.L4 + 1
	case id == openflow.FieldIPv6NDTarget && neighbour:
		return p.L4 + 8
	case id == openflow.FieldIPv6NDSLL:
		return p.SLL
	case id == openflow.FieldIPv6NDTLL:
		return p.TLL
	}
	return 0
}

// overwrite sets bytes that the checksum of layer 4 covers.
func (p *Packet) overwrite(at int, v []byte) {
	p.transportSum(at, v)
	copy(p.Data[at:], v)
}

// transportSum updates the checksum of layer 4 for bytes that change to v.
func (p *Packet) transportSum(at int, v []byte) {
	if p.L4 == 0 {
		return
	}
	sum := map[uint8]int{ProtocolTCP: 16, ProtocolUDP: 6, ProtocolICMP: 2, ProtocolICMPv6: 2}[p.Proto]
	pseudo := at < p.L4 // an address
	if sum == 0 || len(p.Data) < p.L4+sum+2 || pseudo && p.Proto == ProtocolICMP {
		return
	}
	s := p.Data[p.L4+sum:]
	if p.Proto == ProtocolUDP && binary.BigEndian.Uint16(s) == 0 {
		return // none (RFC 768)
	}
	old := p.Data[at : at+len(v)]
	if at%2 != p.L4%2 { // checksums are of 16-bit words
		old, v = p.Data[at-1:at+1], append([]byte{p.Data[at-1]}, v...)
	} else if len(v)%2 == 1 {
		old, v = p.Data[at:at+2], append(append([]byte(nil), v...), p.Data[at+1])
	}
	sumOver(s, old, v)
	if p.Proto == ProtocolUDP && binary.BigEndian.Uint16(s) == 0 {
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
func (p *Packet) setTrafficClass(v, mask uint8) {
	switch {
	case p.L3 == 0:
	case p.EthType() == EtherIPv4:
		b := p.Data[p.L3 : p.L3+2]
		set := []byte{b[0], b[1]&^mask | v&mask}
		sumOver(p.Data[p.L3+10:], b, set)
		copy(b, set)
	case p.EthType() == EtherIPv6:
		first := binary.BigEndian.Uint32(p.Data[p.L3:])
		class := uint8(first>>20)&^mask | v&mask
		binary.BigEndian.PutUint32(p.Data[p.L3:], first&^(0xff<<20)|uint32(class)<<20)
	}
}

// TTL is the TTL or the hop limit, or false if the packet has none.
func (p *Packet) TTL() (uint8, bool) {
	switch {
	case p.L3 == 0:
	case p.EthType() == EtherIPv4:
		return p.Data[p.L3+8], true
	case p.EthType() == EtherIPv6:
		return p.Data[p.L3+7], true
	}
	return 0, false
}

// SetTTL sets the TTL or the hop limit, if the packet has one.
func (p *Packet) SetTTL(v uint8) {
	switch {
	case p.L3 == 0:
	case p.EthType() == EtherIPv4:
		b := p.Data[p.L3+8 : p.L3+10]
		set := []byte{v, b[1]}
		sumOver(p.Data[p.L3+10:], b, set)
		copy(b, set)
	case p.EthType() == EtherIPv6:
		p.Data[p.L3+7] = v
	}
}

// PushVLAN adds a tag with id and priority 0. Section 5.12.1 has those of the outermost tag; Open vSwitch does not copy
// them.
func (p *Packet) PushVLAN(t uint16) {
	if len(p.Data) < EthernetHeader {
		return
	}
	d := make([]byte, 0, len(p.Data)+4)
	d = append(d, p.Data[:12]...)
	d = binary.BigEndian.AppendUint16(d, t)
	d = append(d, 0, 0)
	p.Data = append(d, p.Data[12:]...)
	p.parse()
}

// PopVLAN removes the outermost tag, if there is one.
func (p *Packet) PopVLAN() {
	if !p.Tagged() || len(p.Data) < EthernetHeader+4 {
		return
	}
	p.Data = append(append([]byte(nil), p.Data[:12]...), p.Data[16:]...)
	p.parse()
}

func (p *Packet) setVLAN(id openflow.FieldID, v uint16) {
	if !p.Tagged() || len(p.Data) < EthernetHeader+4 {
		return
	}
	tci := binary.BigEndian.Uint16(p.Data[14:])
	if id == openflow.FieldVLANVID {
		tci = tci&0xf000 | v&0xfff
	} else {
		tci = tci&0x1fff | v<<13
	}
	binary.BigEndian.PutUint16(p.Data[14:], tci)
}
