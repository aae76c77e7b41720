package oftest

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Whatever is set in a frame, its checksums are right, and the field has the value.
func TestChecksums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := [][]byte{
			udpFrame("10.0.0.1", "10.0.0.2", 1, 2, rapid.IntRange(0, 3).Draw(t, "payload")), tcpFrame(64, 1, 2), icmpFrame(8),
			udpFrame("fd00::1", "fd00::2", 1, 2, 5), neighbourFrame("fd00::2"), vlanFrame(5, 3),
		}
		p := pipeline.NewPacket(rapid.SampledFrom(frames).Draw(t, "frame"), 1)
		byte4 := func() (b [4]byte) {
			copy(b[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes"))
			return b
		}
		for range rapid.IntRange(1, 6).Draw(t, "fields") {
			b := byte4()
			six := netip.AddrFrom16([16]byte{0xfd, 5: b[0], 9: b[1], 14: b[2], 15: b[3]})
			port := uint16(b[0])<<8 | uint16(b[1])
			f := rapid.SampledFrom([]of.Field{
				of.IPv4Src(netip.PrefixFrom(netip.AddrFrom4(b), 32)), of.IPv4Dst(netip.PrefixFrom(netip.AddrFrom4(b), 32)),
				of.IPv6Src(netip.PrefixFrom(six, 128)), of.IPv6Dst(netip.PrefixFrom(six, 128)), of.IPv6NDTarget(six), of.IPv6NDSLL(of.MAC{2, 0, b[0], b[1], b[2], b[3]}),
				of.UDPSrc(port), of.UDPDst(port), of.TCPSrc(port), of.TCPDst(port),
				of.ICMPv4Type(b[0]), of.ICMPv4Code(b[1]), of.ICMPv6Code(b[1]), of.IPDSCP(b[0] & 63), of.IPECN(b[0] & 3),
			}).Draw(t, "field")
			had := p.Key
			p.SetField(f)
			if v := p.Key.Bytes(f.ID()); string(v) != string(f.Value()) && (p.Key != had || string(had.Bytes(f.ID())) != string(make([]byte, len(v)))) {
				t.Fatalf("%v is set to %x", f, v)
			}
			p.SetTTL(b[3])
		}
		message := p.Message()
		src, dst := p.Addr(of.FieldIPv4Src), p.Addr(of.FieldIPv4Dst)
		if p.EthType() == pipeline.EtherIPv6 {
			src, dst = p.Addr(of.FieldIPv6Src), p.Addr(of.FieldIPv6Dst)
		} else if sum := internetSum(0, p.Data[p.L3:p.L3+20]); sum != 0 {
			t.Fatalf("the checksum of IPv4 is wrong by %#x", sum)
		}
		sum := uint32(0)
		if p.Proto != pipeline.ProtocolICMP {
			sum = pseudo(src, dst, p.Proto, len(message))
		}
		if sum := internetSum(sum, message); sum != 0 {
			t.Fatalf("the checksum of protocol %d is wrong by %#x: %x", p.Proto, sum, p.Data)
		}
	})
}
