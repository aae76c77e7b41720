package frames

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/group"
)

// Ethernet types and addresses of packets that are not IP: IEEE 802.1Q-2018, table 8-1, and IEEE 802 Numbers (IANA). The type of a
// broadcast is one for experiments (IEEE 802-2014, clause 9.2.4).
var linkFrames = map[string]struct {
	dst  fabric.MAC
	kind layers.EthernetType
}{
	"lldp":  {fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0x0e}, layers.EthernetTypeLinkLayerDiscovery},
	"stp":   {fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0}, layers.EthernetTypeLLC},
	"lacp":  {fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0x02}, 0x8809},
	"eapol": {fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0x03}, layers.EthernetTypeEAPOL},
}

const experiment layers.EthernetType = 0x88b5

var broadcast = fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

const (
	leastFrame = 60 // bytes, without the checksum
	defaultTTL = 64
	// The types of echo requests (RFC 792; RFC 4443, section 4.1).
	echoRequest, echoRequest6 = 8, 128
)

// ErrNoHost: no host is known that has the destination's address.
var ErrNoHost = errors.New("no host is known")

// Frame returns the frame of the packet, as a host sends it: with the MAC of the host, and in its VLAN if the packet has none. Of the
// host only the MAC is needed. The destination's MAC is that of the host of t which has the address; the error is ErrNoHost if there
// is none.
func (p Packet) Frame(t *fabric.Topology, from fabric.Host) ([]byte, error) {
	vlan := p.VLAN
	if vlan == 0 {
		vlan = from.VLAN
	}
	dst, err := p.destination(t, vlan)
	if err != nil {
		return nil, err
	}
	kind, body := p.body(from)
	tagged := p.Tagged() || vlan != 0
	e := &layers.Ethernet{SrcMAC: from.MAC[:], DstMAC: dst[:], EthernetType: kind}
	list := []gopacket.SerializableLayer{e}
	if tagged {
		e.EthernetType = layers.EthernetTypeDot1Q
		list = append(list, &layers.Dot1Q{VLANIdentifier: vlan, Priority: p.PCP, Type: kind})
	}
	b := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, options, append(list, body...)...); err != nil {
		return nil, fmt.Errorf("cannot make a frame of the packet: %w", err)
	}
	data := b.Bytes()
	for len(data) < leastFrame {
		data = append(data, 0)
	}
	return data, nil
}

// destination returns the MAC to which a packet goes.
func (p Packet) destination(t *fabric.Topology, vlan uint16) (m fabric.MAC, err error) {
	to := p.Dst
	switch {
	case p.dst != nil:
		return *p.dst, nil
	case p.asks == "nd":
		return multicastMAC(solicitedNode(p.target)), nil
	case p.asks != "":
		return broadcast, nil
	case p.Link != "":
		return linkFrames[p.Link].dst, nil
	case to.IsMulticast():
		return multicastMAC(to), nil
	case to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return broadcast, nil
	}
	h, ok := t.HostWith(to, vlan)
	if !ok {
		in := ""
		if vlan != 0 {
			in = fmt.Sprintf(" in VLAN %d", vlan)
		}
		return m, fmt.Errorf("%w that has %v%s: add dmac and the MAC address of the host or router to the packet", ErrNoHost, to, in)
	}
	return h.MAC, nil
}

// multicastMAC returns the MAC of a multicast address (RFC 1112, section 6.4; RFC 2464, section 7).
func multicastMAC(a netip.Addr) fabric.MAC {
	if b := a.AsSlice(); a.Is4() {
		return fabric.MAC{0x01, 0x00, 0x5e, b[1] & 0x7f, b[2], b[3]}
	}
	b := a.As16()
	return fabric.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// solicitedNode returns the address to which questions for an address go (RFC 4291, section 2.7.1).
func solicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// body returns what follows the header of the frame, and its type.
func (p Packet) body(from fabric.Host) (layers.EthernetType, []gopacket.SerializableLayer) {
	switch {
	case p.asks == "arp":
		return layers.EthernetTypeARP, []gopacket.SerializableLayer{p.arp(from)}
	case p.asks == "nd":
		return layers.EthernetTypeIPv6, p.neighbour(from)
	case p.asks == "broadcast":
		return experiment, nil
	case p.Link == "stp": // the header of 802.2 with the address of bridges
		return layers.EthernetTypeLLC, []gopacket.SerializableLayer{gopacket.Payload(append([]byte{0x42, 0x42, 3}, make([]byte, 35)...))}
	case p.Link != "":
		return linkFrames[p.Link].kind, nil
	case p.Src.Is4():
		return layers.EthernetTypeIPv4, p.ip()
	}
	return layers.EthernetTypeIPv6, p.ip()
}

// own returns the first address of a host of a family, or the unspecified one.
func own(h fabric.Host, six bool) netip.Addr {
	for _, a := range h.Addrs {
		if a.Is6() == six {
			return a
		}
	}
	if six {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// arp is a request for the target, or for the host's own address if there is none (RFC 5227, section 1.1).
func (p Packet) arp(from fabric.Host) *layers.ARP {
	src := own(from, false)
	target := p.target
	if !target.IsValid() {
		target = src
	}
	return &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: from.MAC[:], SourceProtAddress: src.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: target.AsSlice(),
	}
}

// neighbour is a neighbour solicitation for the target (RFC 4861, section 4.3).
func (p Packet) neighbour(from fabric.Host) []gopacket.SerializableLayer {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: own(from, true).AsSlice(), DstIP: solicitedNode(p.target).AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
	_ = icmp.SetNetworkLayerForChecksum(ip) // fails only for layers that are not IP
	return []gopacket.SerializableLayer{ip, icmp, &layers.ICMPv6NeighborSolicitation{
		TargetAddress: p.target.AsSlice(), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: from.MAC[:]}},
	}}
}

// ipHeader is a header of IP, which a header of layer 4 needs for its checksum.
type ipHeader interface {
	gopacket.NetworkLayer
	gopacket.SerializableLayer
}

// ip is an IP packet.
func (p Packet) ip() []gopacket.SerializableLayer {
	ttl := p.TTL
	if ttl == 0 {
		ttl = defaultTTL
	}
	var ip ipHeader = &layers.IPv6{
		Version: 6, TrafficClass: p.DSCP << 2, HopLimit: ttl, NextHeader: layers.IPProtocol(p.Proto), SrcIP: p.Src.AsSlice(), DstIP: p.Dst.AsSlice(),
	}
	header := 40
	if p.Src.Is4() {
		four := &layers.IPv4{Version: 4, IHL: 5, TOS: p.DSCP << 2, TTL: ttl, Protocol: layers.IPProtocol(p.Proto), SrcIP: p.Src.AsSlice(), DstIP: p.Dst.AsSlice()}
		if p.Fragment {
			four.FragOffset = 1
		}
		ip, header = four, 20
	}
	list := []gopacket.SerializableLayer{ip}
	switch t, size := p.transport(ip); {
	case p.Fragment && p.Src.Is6():
		ip.(*layers.IPv6).NextHeader = layers.IPProtocolIPv6Fragment
		list, header = append(list, gopacket.Payload([]byte{p.Proto, 0, 0, 8, 0, 0, 0, 1})), header+8 // RFC 8200, section 4.5: offset 1
	case t != nil && !p.Fragment:
		list, header = append(list, t), header+size
	}
	return append(list, gopacket.Payload(make([]byte, max(int(p.Length)-header, 0))))
}

// transport is the header of layer 4 and its size, nil for protocols that are not parsed.
func (p Packet) transport(ip gopacket.NetworkLayer) (gopacket.SerializableLayer, int) {
	switch p.Proto {
	case group.TCP:
		t := &layers.TCP{SrcPort: layers.TCPPort(p.SPort), DstPort: layers.TCPPort(p.DPort), SYN: !p.PureAck, ACK: p.PureAck, Window: 65535}
		_ = t.SetNetworkLayerForChecksum(ip)
		return t, 20
	case group.UDP:
		u := &layers.UDP{SrcPort: layers.UDPPort(p.SPort), DstPort: layers.UDPPort(p.DPort)}
		_ = u.SetNetworkLayerForChecksum(ip)
		return u, 8
	case group.SCTP:
		return &layers.SCTP{SrcPort: layers.SCTPPort(p.SPort), DstPort: layers.SCTPPort(p.DPort)}, 12
	case group.ICMP:
		if p.ICMPType == 0 {
			p.ICMPType = echoRequest
		}
		return &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(p.ICMPType, 0)}, 8
	case group.ICMPv6:
		if p.ICMPType == 0 {
			p.ICMPType = echoRequest6
		}
		i := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(p.ICMPType, 0)}
		_ = i.SetNetworkLayerForChecksum(ip)
		return i, 4
	}
	return nil, 0
}
