package oftest

import (
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"headgate.dev/headgate/fabric/openflow"
)

// The frames of tests are made by gopacket, which is independent of the package's own code.

func serialize(l ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// mac returns an address that ends in n.
func mac(n byte) openflow.MAC { return openflow.MAC{0x0a, 0, 0, 0, 0, n} }

func hw(m openflow.MAC) net.HardwareAddr { return m[:] }

func eth(src, dst openflow.MAC, t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: hw(src), DstMAC: hw(dst), EthernetType: t}
}

// udpFrame has a payload of n bytes.
func udpFrame(src, dst string, from, to uint16, n int) []byte {
	a, b := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	udp := &layers.UDP{SrcPort: layers.UDPPort(from), DstPort: layers.UDPPort(to)}
	payload := gopacket.Payload(make([]byte, n))
	if a.Is6() {
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: a.AsSlice(), DstIP: b.AsSlice()}
		_ = udp.SetNetworkLayerForChecksum(ip)
		return serialize(eth(mac(1), mac(2), layers.EthernetTypeIPv6), ip, udp, payload)
	}
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: a.AsSlice(), DstIP: b.AsSlice()}
	_ = udp.SetNetworkLayerForChecksum(ip)
	return serialize(eth(mac(1), mac(2), layers.EthernetTypeIPv4), ip, udp, payload)
}

func tcpFrame(ttl uint8, from, to uint16) []byte {
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: ttl, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
	tcp := &layers.TCP{SrcPort: layers.TCPPort(from), DstPort: layers.TCPPort(to), SYN: true, Window: 100}
	_ = tcp.SetNetworkLayerForChecksum(ip)
	return serialize(eth(mac(1), mac(2), layers.EthernetTypeIPv4), ip, tcp, gopacket.Payload("odd"))
}

func vlanFrame(id uint16, pcp uint8) []byte {
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 9, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 5, DstPort: 6}
	_ = udp.SetNetworkLayerForChecksum(ip)
	return serialize(eth(mac(1), mac(2), layers.EthernetTypeDot1Q),
		&layers.Dot1Q{VLANIdentifier: id, Priority: pcp, Type: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload("data"))
}

func arpFrame(op uint16, spa, tpa string) []byte {
	return serialize(eth(mac(1), openflow.MAC{255, 255, 255, 255, 255, 255}, layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: hw(mac(1)), SourceProtAddress: netip.MustParseAddr(spa).AsSlice(),
		DstHwAddress: hw(mac(0)), DstProtAddress: netip.MustParseAddr(tpa).AsSlice(),
	}, gopacket.Payload(make([]byte, 18)))
}

func icmpFrame(typ uint8) []byte {
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
	return serialize(eth(mac(1), mac(2), layers.EthernetTypeIPv4), ip,
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, 0), Id: 1, Seq: 1}, gopacket.Payload("ping"))
}

func neighbourFrame(target string) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("ff02::1:ff00:2")}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
	_ = icmp.SetNetworkLayerForChecksum(ip)
	return serialize(eth(mac(1), openflow.MAC{0x33, 0x33, 0xff, 0, 0, 2}, layers.EthernetTypeIPv6), ip, icmp, &layers.ICMPv6NeighborSolicitation{
		TargetAddress: net.ParseIP(target), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: hw(mac(1))}},
	})
}
