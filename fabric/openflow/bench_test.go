package openflow

import (
	"net/netip"
	"testing"
)

// change is a flow-mod of the size that most have.
var change = &FlowMod{
	Priority: 1000, Cookie: 1, Buffer: NoBuffer, OutPort: PortAny, OutGroup: GroupAny, Match: Match{VLAN(3072)},
	Instructions: Instructions{ApplyActions{Actions{Group{Group: 7}}}},
}

// small are the messages of which a controller gets many.
var small = []struct {
	name string
	m    Message
}{
	{"packet-in", &PacketIn{Buffer: NoBuffer, TotalLen: 64, Reason: ReasonAction, Cookie: 1, Match: Match{InPort(3)}, Data: make([]byte, 64)}},
	{"flow-stats", &MultipartReply{Body: &FlowStatsReply{[]FlowStats{{
		Priority: 100, Cookie: 1, Packets: 2, Bytes: 3,
		Match:        Match{EthType(ethIPv4), IPv4Dst(netip.MustParsePrefix("10.0.0.0/8"))},
		Instructions: Instructions{ApplyActions{Actions{Output{Port: 2}}}},
	}}}}},
	{"flow-mod", change},
	{"flow-mod in a bundle", &BundleAdd{ID: 1, Flags: BundleAtomic | BundleOrdered, Message: change}},
	{"echo", &EchoReply{Data: make([]byte, 8)}},
	{"barrier", &BarrierReply{}},
}

// BenchmarkDecode counts the messages that one processor decodes, and their bytes.
func BenchmarkDecode(b *testing.B) {
	for _, s := range small {
		b.Run(s.name, func(b *testing.B) {
			wire, err := Append(nil, 1, s.m)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				if _, _, err := Decode(wire); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(len(wire)), "bytes/message")
		})
	}
}

// BenchmarkAppend counts the messages that one processor encodes.
func BenchmarkAppend(b *testing.B) {
	for _, s := range small {
		b.Run(s.name, func(b *testing.B) {
			var wire []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if wire, err = Append(wire[:0], 1, s.m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
