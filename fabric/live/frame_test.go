package live

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"headgate.dev/headgate/fabric"
)

var (
	macA, macB = fabric.MAC{2, 0, 0, 0, 0, 1}, fabric.MAC{2, 0, 0, 0, 0, 2}
	ip4A, ip4B = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	ip6A, ip6B = netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2")
)

// serialize returns a frame as gopacket writes it, with its checksums and lengths.
func serialize(t *testing.T, vlan uint16, kind layers.EthernetType, body ...gopacket.SerializableLayer) []byte {
	t.Helper()
	e := &layers.Ethernet{DstMAC: macA[:], SrcMAC: macB[:], EthernetType: kind}
	list := []gopacket.SerializableLayer{e}
	if vlan != 0 {
		e.EthernetType = layers.EthernetTypeDot1Q
		list = append(list, &layers.Dot1Q{VLANIdentifier: vlan, Type: kind})
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, append(list, body...)...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Frames that are written by hand are those of gopacket.
func TestFramesOfGopacket(t *testing.T) {
	for _, vlan := range []uint16{0, 7} {
		for _, operation := range []uint16{layers.ARPRequest, layers.ARPReply} {
			got := arp(operation, macA, vlan, macB, ip4B, macA, ip4A)
			want := serialize(t, vlan, layers.EthernetTypeARP, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
				HwAddressSize: 6, ProtAddressSize: 4, Operation: operation, SourceHwAddress: macB[:], SourceProtAddress: ip4B.AsSlice(),
				DstHwAddress: macA[:], DstProtAddress: ip4A.AsSlice()})
			if !bytes.HasPrefix(want, got) || len(bytes.Trim(want[len(got):], "\x00")) > 0 { // gopacket pads it
				t.Errorf("the ARP frame of operation %d is\n%x, want\n%x", operation, got, want)
			}
		}
		option := func(kind layers.ICMPv6Opt) layers.ICMPv6Options {
			return layers.ICMPv6Options{{Type: kind, Data: macB[:]}}
		}
		for _, c := range []struct {
			kind    byte
			from    netip.Addr
			message gopacket.SerializableLayer
		}{
			{135, ip6B, &layers.ICMPv6NeighborSolicitation{TargetAddress: ip6A.AsSlice(), Options: option(layers.ICMPv6OptSourceAddress)}},
			{135, netip.IPv6Unspecified(), &layers.ICMPv6NeighborSolicitation{TargetAddress: ip6A.AsSlice()}},
			{136, ip6B, &layers.ICMPv6NeighborAdvertisement{Flags: 0x60, TargetAddress: ip6A.AsSlice(), Options: option(layers.ICMPv6OptTargetAddress)}},
		} {
			ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: c.from.AsSlice(), DstIP: ip6A.AsSlice()}
			icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(c.kind, 0)}
			if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
				t.Fatal(err)
			}
			got := neighbour(c.kind, macA, vlan, macB, c.from, ip6A, ip6A)
			if want := serialize(t, vlan, layers.EthernetTypeIPv6, ip, icmp, c.message); !bytes.Equal(got, want) {
				t.Errorf("the frame of type %d from %v is\n%x, want\n%x", c.kind, c.from, got, want)
			}
		}
	}
}

// BenchmarkFrame reads a question for an address, and writes the answer.
func BenchmarkFrame(b *testing.B) {
	request, solicitation := arp(1, macB, 7, macA, ip4A, fabric.MAC{}, ip4B), neighbour(135, macB, 7, macA, ip6A, ip6B, ip6B)
	for name, run := range map[string]func(){
		"parse/arp":       func() { parse(request) },
		"parse/neighbour": func() { parse(solicitation) },
		"write/arp":       func() { arp(2, macA, 7, macB, ip4B, macA, ip4A) },
		"write/neighbour": func() { neighbour(136, macA, 7, macB, ip6B, ip6A, ip6B) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
