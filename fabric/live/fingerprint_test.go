package live

import (
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
)

// A controller that follows another one reads all flows of the switches whose flows somebody has changed meanwhile, or that the
// one before had begun to change, and of no others. It puts them right.
func TestFingerprint(t *testing.T) {
	deleteHosts := func(s *oftest.Switch) error {
		m := &openflow.FlowMod{Command: openflow.FlowDelete, Table: program.TableDeliver, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}
		return s.Do(m)
	}
	foreign := func(s *oftest.Switch) error {
		return s.Do(&openflow.FlowMod{Command: openflow.FlowAdd, Table: 9, Priority: 7, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny})
	}
	for _, c := range []struct {
		name    string
		wait    time.Duration // before the controller ends
		changes []func(*oftest.Switch) error
		reads   uint64
	}{
		{"nothing", markAfter + time.Second, nil, 0},
		{"a flow deleted", markAfter + time.Second, []func(*oftest.Switch) error{deleteHosts}, 1},
		{"a flow added", markAfter + time.Second, []func(*oftest.Switch) error{foreign}, 1},
		{"a flow replaced", markAfter + time.Second, []func(*oftest.Switch) error{deleteHosts, foreign}, 1},
		{"just changed", markAfter / 2, nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newKnown(t, ring)
				w.settle(markAfter)
				w.deleteAll(w.sw[0])
				w.settle(countInterval + markAfter + time.Second)
				w.cables[0].Unplug()
				w.settle(time.Second)
				w.cables[0].Plug()
				w.settle(c.wait)
				w.stop()
				for _, change := range c.changes {
					if err := change(w.sw[1]); err != nil {
						t.Fatal(err)
					}
				}
				w.start(2)
				w.settle(3 * time.Second)
				if n := w.live.Counters().Resyncs; n != c.reads {
					t.Errorf("all flows were read %d times, want %d", n, c.reads)
				}
				if missing, _ := w.ping(time.Second); len(missing) > 0 {
					t.Errorf("no answer: %v", missing)
				}
			})
		})
	}
}

// A controller keeps the fingerprint of a switch that it has found right, and its hosts.
func TestFingerprintTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		w.settle(markAfter)
		for generation := range uint64(3) {
			w.stop()
			w.start(generation + 2)
			w.settle(3 * time.Second)
			if hosts := len(w.live.Plan().Topology.Hosts()); hosts != 4 || w.live.Counters().Resyncs != 0 {
				t.Errorf("%d hosts, and all flows were read %d times", hosts, w.live.Counters().Resyncs)
			}
			for n, changes := range w.sent(openflow.TypeFlowMod) {
				if changes != 0 {
					t.Errorf("switch %d got %d changes", n+1, changes)
				}
			}
		}
	})
}

// The flows of a switch that has many and no fingerprint are read once, when there is a plan, and what is wrong is deleted.
func TestManyFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		w.settle(markAfter)
		w.stop()
		right := len(w.sw[1].Flows())
		cookie, _ := program.OfKind(program.KindRemote)
		for n := range fewChanges + 1 {
			old := &openflow.FlowMod{
				Command: openflow.FlowAdd, Table: program.TableDestination, Priority: 2000, Cookie: cookie, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny,
				Match: openflow.Match{openflow.EthDst(openflow.MAC{2, 9, 9, 9, byte(n >> 8), byte(n)})},
			}
			if err := w.sw[1].Do(old); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.sw[1].Do(program.Discovery(0).Mod()); err != nil {
			t.Fatal(err)
		}
		w.start(2)
		w.settle(3 * time.Second)
		if n := w.live.Counters().Resyncs; n != 1 {
			t.Errorf("all flows were read %d times", n)
		}
		if got := len(w.sw[1].Flows()); got != right {
			t.Errorf("%d flows, want %d", got, right)
		}
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
	})
}

// A controller whose switches are slow finds all links before it changes their rules.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		w.settle(markAfter)
		w.stop()
		for i := range w.late {
			w.late[i][1].Store(int64(500 * time.Millisecond))
		}
		connect := w.lead(2)
		w.live.Configure(anySwitch)
		time.Sleep(time.Second)
		connect(w.sw...)
		w.settle(20 * time.Second)
		for n, changes := range w.sent(openflow.TypeFlowMod) {
			if changes != 0 {
				t.Errorf("switch %d got %d changes", n+1, changes)
			}
		}
		if links := len(w.live.Plan().Topology.Links()); links != 2*len(ring) {
			t.Errorf("%d links, want %d", links, 2*len(ring))
		}
	})
}
