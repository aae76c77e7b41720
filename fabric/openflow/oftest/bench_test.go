package oftest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// BenchmarkPipeline passes frames through 4 tables of 1,000 flows each. Their matches have four masks and one priority, so
// that no search ends early.
func BenchmarkPipeline(b *testing.B) {
	s := withPorts(b, Options{}, 4)
	for table := range of.TableID(4) {
		var next []of.Instruction
		if table < 3 {
			next = append(next, of.GotoTable{Table: table + 1})
		} else {
			next = append(next, apply(output(2)))
		}
		for n := range 1000 {
			a := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
			var m of.Match
			switch n % 4 {
			case 0:
				m = of.Match{of.EthDst(of.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)})}
			case 1:
				m = of.Match{of.InPort(of.PortNo(n))}
			case 2:
				m = of.Match{ipv4, of.IPv4Dst(netip.PrefixFrom(a, 32))}
			case 3:
				m = of.Match{ipv4, of.IPProto(pipeline.ProtocolUDP), of.UDPDst(uint16(n))}
			}
			do(b, s, flowMod(table, 10, m, next...))
		}
	}
	var frames [][]byte
	for n := range 250 {
		frames = append(frames, udpFrame("10.9.9.9", fmt.Sprintf("10.0.%d.%d", (4*n+2)>>8, (4*n+2)&255), 9, uint16(2000+n), 100))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Receive(3, frames[i%len(frames)])
	}
	if st, _ := s.PortStats(2); st.TxPackets != uint64(b.N) {
		b.Fatalf("%d of %d frames left", st.TxPackets, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkFluid advances 5,000 metered streams over 1,000 switches in rings of 10 by a second: what a test of reservations
// does for each second of virtual time.
func BenchmarkFluid(b *testing.B) {
	n := NewNetwork()
	now := time.Now()
	for range 100 {
		l := newLine(b, 10, Options{Tables: 4}, CableOptions{Capacity: 100e6})
		for i, s := range l.sw {
			for j := range 10 {
				out := of.PortNo(2)
				if j == i {
					out = 1
				} else if j < i {
					out = 3
				}
				do(b, s, meterMod(of.MeterAdd, of.MeterKbps|of.MeterBurst, of.MeterID(j+1), drop(1000, 100)),
					flowMod(0, 10, of.Match{of.EthDst(mac(byte(j + 1)))}, of.Meter{Meter: of.MeterID(j + 1)}, apply(output(out))))
			}
		}
		for k := range 50 {
			from := k % 10
			frame := l.frame1000(from, (from+1+k/10)%10)
			binary.BigEndian.PutUint16(frame[34:], uint16(k))
			n.streams = append(n.streams, &Stream{n: n, from: l.hosts[from], frame: frame, rate: 2e6})
		}
		n.cables = append(n.cables, l.cables...)
	}
	b.ResetTimer()
	for b.Loop() {
		n.advanced = now
		now = time.Now()
		n.advanced = now.Add(-time.Second)
		n.advance()
	}
	b.ReportMetric(float64(len(n.streams)), "streams")
}
