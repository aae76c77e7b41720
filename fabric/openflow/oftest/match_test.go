package oftest

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// frameOf draws one of few frames, so that flows match often.
func frameOf(t *rapid.T) []byte {
	port := uint16(rapid.IntRange(1, 3).Draw(t, "port"))
	last := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.1.1"}).Draw(t, "dst")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return udpFrame("10.0.0.9", last, port, port, 4)
	case 1:
		return tcpFrame(64, port, port)
	case 2:
		return arpFrame(1, "10.0.0.9", last)
	}
	return vlanFrame(port, uint8(port))
}

// matchOf draws a match that some of these frames have.
func matchOf(t *rapid.T) openflow.Match {
	var m openflow.Match
	if rapid.Bool().Draw(t, "in_port") {
		m = append(m, openflow.InPort(openflow.PortNo(rapid.IntRange(1, 2).Draw(t, "in"))))
	}
	if rapid.Bool().Draw(t, "mac") {
		m = append(m, openflow.EthDstMasked(openflow.MAC{0x0a}, openflow.MAC{0xff}))
	}
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		m = append(m, openflow.AnyVLAN())
	case 1:
		m = append(m, openflow.VLAN(uint16(rapid.IntRange(1, 3).Draw(t, "vlan"))))
	case 2:
		m = append(m, openflow.EthType(pipeline.EtherARP), openflow.ARPTPA(netip.PrefixFrom(netip.MustParseAddr("10.0.0.2"), rapid.IntRange(20, 32).Draw(t, "bits")).Masked()))
	case 3:
		m = append(m, ipv4, openflow.IPv4Dst(netip.PrefixFrom(netip.MustParseAddr("10.0.0.2"), rapid.IntRange(20, 32).Draw(t, "bits")).Masked()))
	case 4:
		m = append(m, ipv4, openflow.IPProto(pipeline.ProtocolUDP), openflow.UDPDst(uint16(rapid.IntRange(1, 3).Draw(t, "udp"))))
	}
	return m
}

// The tuple space finds the flow that a search of all flows finds, after any additions and removals.
func TestLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := &table{}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(tb.all) > 0 && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				tb.remove(tb.all[rapid.IntRange(0, len(tb.all)-1).Draw(t, "which")])
				continue
			}
			m, err := newMatcher(matchOf(t))
			if err != nil {
				t.Fatal(err)
			}
			f := &flow{Flow: pipeline.Flow{Matcher: m, Priority: uint16(rapid.IntRange(0, 4).Draw(t, "priority"))}, order: uint64(n)}
			if tb.find(m, f.Priority) == nil {
				tb.add(f)
			}
		}
		for range 20 {
			p := pipeline.NewPacket(frameOf(t), openflow.PortNo(rapid.IntRange(1, 2).Draw(t, "in")))
			var want *flow
			for _, f := range tb.all {
				if f.Matches(&p.Key) && (want == nil || f.before(want)) {
					want = f
				}
			}
			if got := tb.lookup(&p.Key); got != want {
				t.Fatalf("lookup: %+v, want %+v", got, want)
			}
		}
		for _, f := range tb.all {
			if tb.find(f.Matcher, f.Priority) != f {
				t.Fatal("a flow is not found by its match")
			}
		}
	})
}

// A match includes another one, or overlaps it, only if packets show no contradiction.
func TestIncludes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := newMatcher(matchOf(t))
		b, _ := newMatcher(matchOf(t))
		p := pipeline.NewPacket(frameOf(t), openflow.PortNo(rapid.IntRange(1, 2).Draw(t, "in")))
		inA, inB := a.Matches(&p.Key), b.Matches(&p.Key)
		if a.Includes(b) && inB && !inA {
			t.Fatal("a packet of the more specific match is not in the other one")
		}
		if inA && inB && !a.Overlaps(b) {
			t.Fatal("a packet is in both, but they do not overlap")
		}
		if a.Includes(b) && !a.Overlaps(b) {
			t.Fatal("one includes the other without an overlap")
		}
	})
}
