package live

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/internal/golden"
)

func (w *world) topology() *fabric.Topology {
	w.Helper()
	t, err := w.live.Topology()
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// traced is the text of the trace of a datagram from host 1 to a MAC.
func (w *world) traced(to openflow.MAC) string {
	w.Helper()
	from := w.hosts[0]
	frame := oftest.UDPFrame(from.MAC(), to, netip.AddrPortFrom(from.Addr(false), 1000), netip.MustParseAddrPort("10.0.0.3:80"), 60)
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	got, err := w.live.Trace(ctx, w.topology(), fabric.PortID{Switch: 1, Port: 1}, frame)
	if err != nil {
		w.Fatal(err)
	}
	var text strings.Builder
	if err := got.Write(&text); err != nil {
		w.Fatal(err)
	}
	return text.String()
}

// foreign sets a flow of another program in a switch.
func (w *world) foreign(sw int, table openflow.TableID, priority uint16, m openflow.Match, actions ...openflow.Action) {
	w.Helper()
	if err := w.sw[sw].Do(&openflow.FlowMod{
		Table: table, Priority: priority, Cookie: 0x7, Match: m, Instructions: openflow.Instructions{openflow.ApplyActions{Actions: actions}},
		Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny,
	}); err != nil {
		w.Fatal(err)
	}
}

// TestTrace holds the texts of traces in a ring of four switches with a cable across. Host n is at port 1 of switch n.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		h2, h3 := w.hosts[1].MAC(), w.hosts[2].MAC()
		text := "# straight from host 1 to host 3\n" + w.traced(h3)
		text += "\n# to all\n" + w.traced(oftest.Broadcast)
		text += "\n# to a host that is not known\n" + w.traced(openflow.MAC{2, 9, 9, 9, 9, 9})

		w.cables[4].Unplug() // from switch 1 to 3; no time passes in which the controller could change a rule
		text += "\n# by the backup after the port of the straight cable is down\n" + w.traced(h3)
		w.settle(time.Second)
		text += "\n# by the new rules a second later\n" + w.traced(h3)

		w.foreign(0, program.TableDestination, 60000, openflow.Match{openflow.EthDst(h2)}, openflow.Output{Port: 3})
		text += "\n# to host 2, but a flow of another program takes the frame\n" + w.traced(h2)
		loop := openflow.MAC{2, 7, 7, 7, 7, 7} // from 1 to 2, 3, 4 and 1 again
		for sw := range w.sw {
			w.foreign(sw, 0, 60000, openflow.Match{openflow.EthDst(loop)}, openflow.Output{Port: 2}, openflow.Output{Port: 3})
		}
		text += "\n# flows of another program that make a loop\n" + w.traced(loop)
		w.cut[1].Store(true)
		w.settle(10 * time.Second)
		text += "\n# over a switch that the controller does not reach\n" + w.traced(loop)
		golden.Compare(t, filepath.Join("testdata", "trace.txt"), text)
	})
}

// A trace begins at a port of the network, and ends with its context.
func TestTraceErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.settle(time.Second)
		if _, err := w.live.Trace(w.Context(), w.topology(), fabric.PortID{Switch: 1, Port: 7}, make([]byte, 60)); err == nil || !strings.Contains(err.Error(), "no port 0000000000000001/7") {
			t.Errorf("a port that does not exist: %v", err)
		}
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		got, err := w.live.Trace(ctx, w.topology(), fabric.PortID{Switch: 1, Port: 1}, make([]byte, 60))
		if err != nil || len(got.Hops) != 1 || got.Hops[0].Err != context.Canceled {
			t.Errorf("%+v, %v: no error of the context", got, err)
		}
	})
}
