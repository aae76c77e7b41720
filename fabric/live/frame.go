package live

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"headgate.dev/headgate/fabric"
)

// frame is what the loop reads of a frame of a host.
type frame struct {
	data     []byte
	src, dst fabric.MAC
	vlan     uint16
	// What it says of addresses: asked is the address whose owner is asked for or told, and owns are the sender's. by is how.
	by    fabric.Learned
	asked netip.Addr
	owns  []netip.Addr
	// reply is true for an answer to such a question.
	reply bool
	// ip is the sender's address, as far as the frame shows it.
	ip netip.Addr
}

// announces reports whether the sender tells all others its own address (RFC 5227, section 3; RFC 4861, section 7.2.6).
func (f frame) announces() bool { return f.dst.Group() && slices.Contains(f.owns, f.asked) }

// parse reads a frame. ok is false if it is none.
func parse(data []byte) (f frame, ok bool) {
	if len(data) < 14 {
		return f, false
	}
	f.data, f.dst, f.src = data, fabric.MAC(data[:6]), fabric.MAC(data[6:12])
	if f.src.Group() || f.src == (fabric.MAC{}) {
		return f, false
	}
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	if tag, ok := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok {
		f.vlan = tag.VLANIdentifier
	}
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok && a.AddrType == layers.LinkTypeEthernet && a.Protocol == layers.EthernetTypeIPv4 && len(a.SourceProtAddress) == 4 && len(a.DstProtAddress) == 4 {
		f.by = fabric.FromARP
		f.ip = netip.AddrFrom4([4]byte(a.SourceProtAddress))
		if f.ip.IsValid() && !f.ip.IsUnspecified() && string(a.SourceHwAddress) == string(f.src[:]) {
			f.owns = []netip.Addr{f.ip}
		}
		f.asked, f.reply = netip.AddrFrom4([4]byte(a.DstProtAddress)), a.Operation == layers.ARPReply
		return f, true
	}
	if n, ok := p.Layer(layers.LayerTypeICMPv6NeighborSolicitation).(*layers.ICMPv6NeighborSolicitation); ok {
		f.by, f.asked = fabric.FromNDP, address(n.TargetAddress)
		if ip, ok := p.NetworkLayer().(*layers.IPv6); ok {
			if f.ip = address(ip.SrcIP); !f.ip.IsUnspecified() {
				f.owns = []netip.Addr{f.ip}
			}
		}
		return f, true
	}
	if n, ok := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement); ok {
		f.by, f.reply = fabric.FromNDP, true
		f.asked = address(n.TargetAddress)
		f.owns = []netip.Addr{f.asked}
		return f, true
	}
	return f, true
}

func address(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// lease returns the address that an answer of a DHCP server gives to a MAC (RFC 2131, section 4.3.1).
func lease(data []byte) (to fabric.MAC, a netip.Addr, ok bool) {
	d, is := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true}).Layer(layers.LayerTypeDHCPv4).(*layers.DHCPv4)
	if !is || d.Operation != layers.DHCPOpReply || len(d.ClientHWAddr) != 6 {
		return to, a, false
	}
	for _, o := range d.Options {
		if o.Type == layers.DHCPOptMessageType && len(o.Data) == 1 && layers.DHCPMsgType(o.Data[0]) == layers.DHCPMsgTypeAck {
			a = address(d.YourClientIP.To4())
			return fabric.MAC(d.ClientHWAddr), a, a.IsValid() && !a.IsUnspecified()
		}
	}
	return to, a, false
}

// Frames are written by hand: gopacket takes 3 to 7 times as long, and as many lines.

// ethernet returns the beginning of a frame.
func ethernet(dst, src fabric.MAC, vlan, kind uint16) []byte {
	b := append(append([]byte{}, dst[:]...), src[:]...)
	if vlan != 0 {
		b = binary.BigEndian.AppendUint16(b, 0x8100)
		b = binary.BigEndian.AppendUint16(b, vlan)
	}
	return binary.BigEndian.AppendUint16(b, kind)
}

// arp returns an ARP request or reply (RFC 826).
func arp(operation uint16, dst fabric.MAC, vlan uint16, fromMAC fabric.MAC, from netip.Addr, toMAC fabric.MAC, to netip.Addr) []byte {
	b := ethernet(dst, fromMAC, vlan, 0x0806)
	b = append(b, 0, 1, 8, 0, 6, 4, byte(operation>>8), byte(operation))
	b = append(append(b, fromMAC[:]...), from.AsSlice()...)
	return append(append(b, toMAC[:]...), to.AsSlice()...)
}

// neighbour returns a neighbour solicitation or advertisement (RFC 4861, sections 4.3 and 4.4) with a link-layer address.
func neighbour(kind byte, dst fabric.MAC, vlan uint16, fromMAC fabric.MAC, from, to, target netip.Addr) []byte {
	const solicitation, flags = 135, 0x60 // solicited, override
	body := []byte{kind, 0, 0, 0, 0, 0, 0, 0}
	option := byte(1) // source link-layer address
	if kind != solicitation {
		body[4], option = flags, 2
	}
	body = append(body, target.AsSlice()...)
	if !from.IsUnspecified() || kind != solicitation {
		body = append(append(body, option, 1), fromMAC[:]...)
	}
	src, dest := from.As16(), to.As16()
	sum := uint32(len(body)) + 58
	for _, part := range [][]byte{src[:], dest[:], body} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(part[i])<<8 | uint32(part[i+1])
		}
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(body[2:], ^uint16(sum))
	b := ethernet(dst, fromMAC, vlan, 0x86dd)
	b = append(b, 0x60, 0, 0, 0, byte(len(body)>>8), byte(len(body)), 58, 255)
	return append(append(append(b, src[:]...), dest[:]...), body...)
}
