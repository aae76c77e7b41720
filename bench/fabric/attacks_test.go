package fabric

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/fabric/openflow"
)

// No peer sends the messages of a switch.
func TestMalformed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for kind := range 80 {
		var s inmemory.Splitter
		features := false
		s.Add(malformed(kind, random), func(m []byte) {
			if _, got, err := openflow.Decode(m); err == nil && got.Type() == openflow.TypeFeaturesReply {
				features = true
			}
		})
		if features {
			t.Errorf("kind %d describes a switch", kind)
		}
	}
}

func TestForged(t *testing.T) {
	frame := make([]byte, 80)
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		f := forged(frame, random)
		if bytes.Equal(f, frame) || !bytes.Equal(f[:14], frame[:14]) {
			t.Fatalf("%x", f)
		}
	}
}

func TestARPReply(t *testing.T) {
	a, b := net.HardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.0.0.2")
	p := gopacket.NewPacket(arpReply(broadcastMAC, a, b, netip.MustParseAddr("10.0.0.3")), layers.LayerTypeEthernet, gopacket.Default)
	arp, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP)
	if !ok || arp.Operation != layers.ARPReply || !bytes.Equal(arp.SourceHwAddress, a) || net.IP(arp.SourceProtAddress).String() != "10.0.0.2" || net.IP(arp.DstProtAddress).String() != "10.0.0.3" {
		t.Errorf("%v", p)
	}
}

func TestAt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if err := at(ctx, 100_000, func() error {
		if n++; n == 500 {
			cancel()
		}
		return nil
	}); err != nil || n != 500 {
		t.Errorf("%d calls after the end, %v", n, err)
	}
	if err := at(t.Context(), 1000, func() error { return context.DeadlineExceeded }); err != context.DeadlineExceeded {
		t.Error(err)
	}
}
