package oftest

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// FuzzServe: whatever a controller sends after its hello, a switch neither fails nor hangs.
func FuzzServe(f *testing.F) {
	for _, s := range scripts() {
		var all []byte
		for _, st := range s.steps {
			if st.to == 1 {
				all = append(all, st.send...)
			}
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := withPorts(t, Options{Tables: 4}, 3)
			ours, theirs := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- s.Serve(ours) }()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			hello, _ := of.Append(nil, 0, of.NewHello(of.Version))
			_, _ = theirs.Write(hello)
			_, _ = theirs.Write(sent)
			for _, frame := range [][]byte{udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 3), vlanFrame(5, 3), sent} {
				s.Receive(1, frame)
			}
			time.Sleep(3 * time.Second) // timeouts
			theirs.Close()
			if err := <-done; err == nil {
				t.Error("the channel ended without a reason")
			}
		})
	})
}

// FuzzPacket: any bytes are a frame, of which any field can be set.
func FuzzPacket(f *testing.F) {
	for _, b := range [][]byte{udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 3), udpFrame("fd00::1", "fd00::2", 1, 2, 3), tcpFrame(1, 2, 3), vlanFrame(5, 3), arpFrame(1, "10.0.0.1", "10.0.0.2"), icmpFrame(8), neighbourFrame("fd00::2")} {
		f.Add(b, uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, which, value uint8) {
		p := pipeline.NewPacket(append([]byte(nil), data...), 1)
		id := of.FieldInPort + of.FieldID(which%uint8(of.FieldIPv6ExtHdr-of.FieldInPort+1))
		v := make([]byte, id.TypeOf(false).Length)
		v[len(v)-1] = value
		field, err := of.NewField(id, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		size := len(p.Data)
		p.SetField(field)
		p.SetTTL(value)
		if len(p.Data) != size {
			t.Errorf("setting %v changed the length", field)
		}
		p.PushVLAN(pipeline.EtherVLAN)
		if size >= pipeline.EthernetHeader && len(p.Data) != size+4 {
			t.Errorf("a pushed tag made %d bytes of %d", len(p.Data), size)
		}
		p.PopVLAN()
		if size >= pipeline.EthernetHeader && len(p.Data) != size {
			t.Errorf("a popped tag left %d bytes of %d", len(p.Data), size)
		}
		newHost(NewNetwork(), HostOptions{Keep: 1, MAC: of.MAC(p.Key.Bytes(of.FieldEthDst))}).receive(p.Data, way{})
	})
}
