package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// super is a packet as the sender's stack sees it, to be built by gopacket: the oracle of cut.
type super struct {
	tags      int
	ipv6, udp bool
	options   bool // timestamps, and an IPv4 option or an IPv6 extension
	class     uint8
	id        uint16
	seq       uint32
	cwr, end  bool // CWR; FIN and PSH
	payload   []byte
	mss       int
}

func (s super) segments() int { return (len(s.payload) + s.mss - 1) / s.mss }

func (s super) String() string {
	return fmt.Sprintf("%d tags, ipv6=%v udp=%v options=%v, %d bytes by %d", s.tags, s.ipv6, s.udp, s.options, len(s.payload), s.mss)
}

// pick returns the part of s that has a run of its segments.
func (s super) pick(from, to int) super {
	p := s
	p.id += uint16(from)
	p.seq += uint32(from * s.mss)
	p.cwr = s.cwr && from == 0
	p.end = s.end && to == s.segments()
	p.payload = s.payload[from*s.mss : min(to*s.mss, len(s.payload))]
	return p
}

// fataler is a test, of the standard library or of rapid.
type fataler interface{ Fatal(a ...any) }

// build returns the frame, with the complete checksum of its transport, or only that of the
// pseudo-header.
func (s super) build(t fataler, partial bool) []byte {
	var stack []gopacket.SerializableLayer
	types := []layers.EthernetType{layers.EthernetTypeQinQ, layers.EthernetTypeDot1Q}[2-s.tags:]
	proto := layers.EthernetTypeIPv4
	if s.ipv6 {
		proto = layers.EthernetTypeIPv6
	}
	types = append(append([]layers.EthernetType{}, types...), proto)
	stack = append(stack, &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: types[0]})
	for i := range s.tags {
		stack = append(stack, &layers.Dot1Q{VLANIdentifier: uint16(i + 5), Type: types[i+1]})
	}
	next := layers.IPProtocolTCP
	if s.udp {
		next = layers.IPProtocolUDP
	}
	var network gopacket.NetworkLayer
	if s.ipv6 {
		ip := &layers.IPv6{Version: 6, TrafficClass: s.class, HopLimit: 64, NextHeader: next, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
		network = ip
		stack = append(stack, ip)
		if s.options {
			ip.NextHeader = layers.IPProtocolIPv6Destination
			stack = append(stack, extension(next))
		}
	} else {
		ip := &layers.IPv4{Version: 4, TOS: s.class, TTL: 64, Id: s.id, Flags: layers.IPv4DontFragment, Protocol: next, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
		if s.options {
			ip.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
		}
		network = ip
		stack = append(stack, ip)
	}
	length := len(s.payload)
	if s.udp {
		udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
		udp.SetNetworkLayerForChecksum(network)
		stack = append(stack, udp)
		length += 8
	} else {
		tcp := &layers.TCP{SrcPort: 1000, DstPort: 2000, Seq: s.seq, Ack: 77, ACK: true, Window: 500, CWR: s.cwr, FIN: s.end, PSH: s.end}
		if s.options {
			tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: []byte{1, 2, 3, 4, 5, 6, 7, 8}}, {OptionType: layers.TCPOptionKindNop}, {OptionType: layers.TCPOptionKindNop}}
		}
		tcp.SetNetworkLayerForChecksum(network)
		stack = append(stack, tcp)
		length += 20
		if s.options {
			length += 12
		}
	}
	stack = append(stack, gopacket.Payload(s.payload))
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...); err != nil {
		t.Fatal(err)
	}
	// gopacket pads to 60 bytes, as a wire does and a TAP does not.
	size := 14 + 4*s.tags + length + 20
	if s.ipv6 {
		size += 20
	}
	if s.options {
		size += 4
		if s.ipv6 {
			size += 4
		}
	}
	b := bytes.Clone(buf.Bytes()[:size])
	if partial {
		src, dst := network.NetworkFlow().Endpoints()
		pseudo := append(bytes.Clone(src.Raw()), dst.Raw()...)
		pseudo = append(pseudo, 0, byte(next), byte(length>>8), byte(length))
		at := len(b) - length + 16
		if s.udp {
			at = len(b) - length + 6
		}
		binary.BigEndian.PutUint16(b[at:], plainSum(pseudo))
	}
	return b
}

// extension is an IPv6 header of destination options that holds only padding.
type extension layers.IPProtocol

func (e extension) LayerType() gopacket.LayerType { return layers.LayerTypeIPv6Destination }
func (e extension) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	p, err := b.PrependBytes(8)
	copy(p, []byte{byte(e), 0, 1, 4, 0, 0, 0, 0})
	return err
}

// plainSum returns the sum in ones' complement of an even number of bytes.
func plainSum(b []byte) uint16 {
	sum := 0
	for i := 0; i+1 < len(b); i += 2 {
		sum += int(b[i])<<8 | int(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// vnet returns s as a TAP passes it.
func (s super) vnet(t fataler) []byte {
	b := s.build(t, true)
	header := len(b) - len(s.payload)
	h := make([]byte, vnetHeader)
	h[vnetFlags] = needsSum
	transport, sum := 20, 16
	switch {
	case s.udp:
		transport, sum = 8, 6
	case s.options:
		transport += 12
	}
	if s.segments() > 1 {
		h[vnetType] = gsoTCP4
		if s.ipv6 {
			h[vnetType] = gsoTCP6
		}
		if s.udp {
			h[vnetType] = gsoUDP
		}
		if s.cwr && !s.udp {
			h[vnetType] |= gsoECN
		}
		binary.NativeEndian.PutUint16(h[vnetSegment:], uint16(s.mss))
	}
	binary.NativeEndian.PutUint16(h[vnetHeaderLen:], uint16(header))
	binary.NativeEndian.PutUint16(h[vnetSumStart:], uint16(header-transport))
	binary.NativeEndian.PutUint16(h[vnetSumOffset:], uint16(sum))
	return append(h, b...)
}

// drawSuper draws a packet of more than one segment.
func drawSuper(t *rapid.T) super {
	s := super{
		tags: rapid.IntRange(0, 2).Draw(t, "tags"), ipv6: rapid.Bool().Draw(t, "ipv6"), udp: rapid.Bool().Draw(t, "udp"), options: rapid.Bool().Draw(t, "options"),
		class: rapid.Uint8().Draw(t, "class"), id: rapid.Uint16().Draw(t, "id"), seq: rapid.Uint32().Draw(t, "seq"),
		cwr: rapid.Bool().Draw(t, "cwr"), end: rapid.Bool().Draw(t, "end"), mss: rapid.IntRange(1, 1460).Draw(t, "mss"),
	}
	if s.mss < 48 {
		s.mss += 48
	}
	n := min(rapid.IntRange(s.mss+1, 60*s.mss).Draw(t, "bytes"), 65_000)
	s.payload = make([]byte, n)
	x := rapid.Uint32().Draw(t, "filling")
	for i := range s.payload {
		x = x*1664525 + 1013904223
		s.payload[i] = byte(x >> 24)
	}
	return s
}

// Cutting a super-packet by any pattern of losses and marks gives the remaining segments. Each cut is,
// byte for byte, the packet that gopacket builds for its segments, with the checksum still to be
// computed. Every segment alone is, with its checksum, the frame that gopacket builds with all
// checksums.
func TestCutIsPick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { testCut(t, drawSuper(t)) })
}

func testCut(t *rapid.T, s super) {
	b := s.vnet(t)
	if rapid.Bool().Draw(t, "in one piece") {
		binary.NativeEndian.PutUint16(b[vnetHeaderLen:], uint16(len(b)-vnetHeader))
	}
	whole := bytes.Clone(b)
	f := parse(b)
	if int(f.segments) != s.segments() || int(f.size) != len(b)-vnetHeader || f.dscp != s.class>>2 || f.ecn != s.class&3 {
		t.Fatalf("%v is parsed as %+v", s, f)
	}
	space := make([]byte, maxHeader)
	for from := 0; from < s.segments(); {
		to := rapid.IntRange(from+1, s.segments()).Draw(t, "to")
		mark := rapid.Bool().Draw(t, "mark")
		if rapid.Bool().Draw(t, "lost") {
			from = to
			continue
		}
		want := s.pick(from, to)
		if mark {
			want.class |= 3
		}
		head, body := f.cut(b, from, to, mark, space)
		got := append(bytes.Clone(head), body...)
		if len(head) == 0 { // all of it: the length of the headers is unchanged
			binary.NativeEndian.PutUint16(got[vnetHeaderLen:], f.body)
		}
		compare(t, fmt.Sprintf("segments %d to %d", from, to), got, want.vnet(t))
		from = to
	}
	b = whole
	for i := range s.segments() {
		head, body := f.cut(b, i, i+1, false, space)
		got := append(bytes.Clone(head), body...)
		if f.segment(i) != len(got)-vnetHeader {
			t.Fatalf("segment %d has %d bytes, and segment returns %d", i, len(got)-vnetHeader, f.segment(i))
		}
		compare(t, fmt.Sprintf("segment %d, finished", i), finish(got), s.pick(i, i+1).build(t, false))
	}
}

// finish does what a device does for NEEDS_CSUM.
func finish(b []byte) []byte {
	start, offset := binary.NativeEndian.Uint16(b[vnetSumStart:]), binary.NativeEndian.Uint16(b[vnetSumOffset:])
	l4 := b[vnetHeader+int(start):]
	sum := ^plainSum(append(bytes.Clone(l4), make([]byte, len(l4)%2)...))
	if sum == 0 && offset == 6 {
		sum = 0xffff // UDP's 0 means none
	}
	binary.BigEndian.PutUint16(l4[offset:], sum)
	return b[vnetHeader:]
}

func compare(t *rapid.T, what string, got, want []byte) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: byte %d is %#x, want %#x\n%x\n%x", what, i, got[i], want[i], got[:min(len(got), 120)], want[:min(len(want), 120)])
		}
	}
}

// A frame that is not a super-packet is one segment, and passes unchanged.
func TestOneSegment(t *testing.T) {
	ether := func(typ uint16, rest int) []byte {
		b := make([]byte, vnetHeader+14+rest)
		binary.BigEndian.PutUint16(b[vnetHeader+12:], typ)
		return b
	}
	full := super{mss: 1460, payload: make([]byte, 1460), class: 0x2a}
	broken := super{mss: 1000, payload: make([]byte, 5000)}.vnet(t)
	broken[vnetHeader+14] = 0x41 // a header of four bytes
	beyond := super{mss: 1000, payload: make([]byte, 5000)}.vnet(t)
	binary.NativeEndian.PutUint16(beyond[vnetSumStart:], 60_000)
	for name, c := range map[string]struct {
		b         []byte
		dscp, ecn uint8
	}{
		"arp":              {ether(0x0806, 28), 0, 0},
		"lldp":             {ether(0x88cc, 60), 0, 0},
		"nothing behind":   {ether(0x0800, 0), 0, 0},
		"a tag at the end": {ether(0x8100, 2), 0, 0},
		"full":             {full.vnet(t), 10, 2},
		"a broken header":  {broken, 0, 0},
		"a false offset":   {beyond, 0, 0},
	} {
		f := parse(c.b)
		if f.segments != 1 || f.segment(0) != len(c.b)-vnetHeader || f.dscp != c.dscp || f.ecn != c.ecn {
			t.Errorf("%s: %+v", name, f)
		}
		before := bytes.Clone(c.b)
		head, body := f.cut(c.b, 0, 1, f.kind == other, nil)
		if len(head) > 0 || !bytes.Equal(body, before) {
			t.Errorf("%s: the frame was changed", name)
		}
	}
}

// Any bytes are parsed and cut within their memory.
func FuzzParse(f *testing.F) {
	f.Add(super{mss: 1000, payload: make([]byte, 5000), tags: 2}.vnet(f))
	f.Add(super{mss: 500, payload: make([]byte, 1100), ipv6: true, udp: true}.vnet(f))
	f.Add(make([]byte, vnetHeader+14))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < vnetHeader+14 || len(b) > maxFrame {
			return
		}
		p := parse(b)
		total := 0
		for i := range int(p.segments) {
			head, body := p.cut(b, i, i+1, true, make([]byte, maxHeader))
			if n := len(head) + len(body) - vnetHeader; n != p.segment(i) {
				t.Fatalf("segment %d has %d bytes, and segment returns %d", i, n, p.segment(i))
			}
			total += p.segment(i) - int(p.body)
		}
		if p.segments > 1 && total != int(p.size)-int(p.body) {
			t.Fatalf("%d bytes of %d are in segments", total, p.size)
		}
	})
}
