package program

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// change changes the parts of the network, without its switches, and brings all to the new programs.
func (w *world) change(do func(p *fabric.Parts)) {
	t := w.c.Topology
	parts := fabric.Parts{Switches: slices.Clone(t.Switches()), Links: slices.Clone(t.Links()), Hosts: slices.Clone(t.Hosts())}
	for n := range parts.Switches {
		parts.Switches[n].Ports = slices.Clone(parts.Switches[n].Ports)
	}
	do(&parts)
	var err error
	if w.c.Topology, err = fabric.New(parts); err != nil {
		w.t.Fatalf("%v", err)
	}
	w.program()
}

var forms = map[string]model{"whole": whole, "one table": oneFull, "one table and no groups": oneBare, "no groups": bare}

// Hosts cannot send with a label, from another port, or with another's address: it goes to the controller or nowhere. With one
// table this holds for broadcast.
func TestSpoofing(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneFull, "one table and no groups": oneBare} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}}, kind)
				label := w.c.Labels[3]
				tagged := append(append([]byte{}, frame(0, hostMAC(2))[:12]...), 0x81, 0, byte(label>>8), byte(label))
				tagged = append(tagged, frame(0, hostMAC(2))[12:]...)
				spoofed := frame(1, broadcast)
				if kind.Capabilities.Tables != 1 {
					spoofed = frame(1, hostMAC(0))
				}
				w.hosts[0].Send(tagged)
				w.hosts[0].Send(spoofed)
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				for n, h := range w.hosts {
					if got := h.Received(); len(got) > 0 {
						t.Errorf("host %d received %x", n+1, got[0].Frame)
					}
				}
				dropped := uint64(0)
				for _, f := range w.sw[0].Flows() {
					if k, _ := KindOf(f.Cookie); k == KindNoLabel {
						dropped += f.Packets
					}
				}
				if dropped != 1 {
					t.Errorf("%d frames with a label were dropped, want 1", dropped)
				}
			})
		})
	}
}

// A port that is not known to belong to hosts takes and gets nothing of them. Nor does the port of the switch itself.
func TestClosedPorts(t *testing.T) {
	for name, kind := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}}, kind)
				w.c.HostPort = func(p fabric.PortID) bool { return p.Switch != 1 }
				w.program()
				for from, counts := range w.deliver(func(int) [][6]byte { return [][6]byte{broadcast, hostMAC(0), hostMAC(1), hostMAC(2)} }) {
					for n, count := range counts {
						if (from == 0 || n == 0) && count > 0 {
							t.Errorf("host %d received %d frames of host %d, and port 1 of switch 1 is closed", n+1, count, from+1)
						}
					}
				}
				for _, h := range w.hosts {
					h.Forget()
				}
				for _, to := range [][6]byte{broadcast, hostMAC(1)} {
					err := w.sw[0].Do(&openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortLocal, Actions: openflow.Actions{openflow.Output{Port: openflow.PortTable}}, Data: frame(0, to)})
					if err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				for n, h := range w.hosts {
					if got := h.Received(); len(got) > 0 && name != "one table and no groups" { // it has no such port
						t.Errorf("host %d received a frame of the port LOCAL of a switch", n+1)
					}
				}
			})
		})
	}
}

// A cable outside of the network's sight, between two ports of hosts, does not multiply broadcasts.
func TestBridgeOutside(t *testing.T) {
	for name, kind := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}}, kind)
				var ends []oftest.End
				for _, no := range []openflow.PortNo{20, 21} {
					if err := w.sw[1].AddPort(oftest.PortOptions{No: no, Down: true}); err != nil {
						t.Fatal(err)
					}
					ends = append(ends, oftest.End{Switch: w.sw[1], Port: no})
				}
				if _, err := w.net.AddCable(ends[0], ends[1], oftest.CableOptions{}); err != nil {
					t.Fatal(err)
				}
				w.change(func(p *fabric.Parts) {
					p.Switches[1].Ports = append(p.Switches[1].Ports, fabric.Port{No: 20}, fabric.Port{No: 21})
					for no := range fabric.PortNo(2) { // so that something is taken from them
						p.Hosts = append(p.Hosts, fabric.Host{HostID: fabric.HostID{MAC: hostMAC(200 + int(no))}, At: fabric.PortID{Switch: 2, Port: 20 + no}})
					}
				})
				for from, counts := range w.deliver(func(int) [][6]byte { return [][6]byte{broadcast} }) {
					for n, count := range counts {
						if want := min(1, max(n-from, from-n)); count != want {
							t.Errorf("host %d received %d broadcasts of host %d, want %d", n+1, count, from+1, want)
						}
					}
				}
			})
		})
	}
}

// A host whose MAC is in two VLANs at two ports of a switch with one table gets its frames from other switches.
func TestOneMACInTwoVLANs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}}, oneFull)
		if err := w.sw[0].AddPort(oftest.PortOptions{No: 9, Down: true}); err != nil {
			t.Fatal(err)
		}
		other, err := w.net.AddHost(oftest.HostOptions{Name: "other", MAC: hostMAC(0)}, oftest.End{Switch: w.sw[0], Port: 9}, oftest.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.change(func(p *fabric.Parts) {
			p.Switches[0].Ports = append(p.Switches[0].Ports, fabric.Port{No: 9})
			p.Hosts = append(p.Hosts, fabric.Host{HostID: fabric.HostID{MAC: hostMAC(0), VLAN: 8}, At: fabric.PortID{Switch: 1, Port: 9}})
		})
		tagged := append(append([]byte{}, frame(1, hostMAC(0))[:12]...), 0x81, 0, 0, 8)
		tagged = append(tagged, frame(1, hostMAC(0))[12:]...)
		for _, f := range [][]byte{frame(1, hostMAC(0)), tagged} {
			w.hosts[0].Forget()
			other.Forget()
			w.hosts[1].Send(f)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			for _, h := range []*oftest.Host{w.hosts[0], other} {
				if got := h.Received(); len(got) != 1 || string(got[0].Frame) != string(f) {
					t.Errorf("host %s received %d frames, want one", h.Name(), len(got))
				}
			}
		}
	})
}
