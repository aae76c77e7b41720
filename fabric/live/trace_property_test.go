package live

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/trace"
)

// scene is a network in which something has happened, and a frame.
type scene struct {
	switches int
	cables   [][2]int
	pulled   []int // cables
	flows    []foreignFlow
	from     int // host
	to       openflow.MAC
}

// foreignFlow is a flow of another program.
type foreignFlow struct {
	sw       int
	table    openflow.TableID
	priority uint16
	match    openflow.Match
	actions  openflow.Actions
}

func drawScene(t *rapid.T) (s scene) {
	draw := func(label string, from, to int) int { return rapid.IntRange(from, to).Draw(t, label) }
	s.switches = draw("switches", 2, 6)
	for n := 1; n < s.switches; n++ {
		s.cables = append(s.cables, [2]int{draw("joins", 0, n-1), n})
	}
	for range draw("more cables", 0, 4) {
		if a, b := draw("a", 0, s.switches-1), draw("b", 0, s.switches-1); a != b {
			s.cables = append(s.cables, [2]int{a, b})
		}
	}
	for range draw("pulled", 0, 2) {
		s.pulled = append(s.pulled, draw("cable", 0, len(s.cables)-1))
	}
	mac := func(label string) openflow.MAC {
		host := hostOptions(draw(label, 0, s.switches-1)).MAC
		return rapid.SampledFrom([]openflow.MAC{host, host, host, oftest.Broadcast, {2, 9, 9, 9, 9, 9}}).Draw(t, label) // the last is of no host
	}
	s.from, s.to = draw("from", 0, s.switches-1), mac("to")
	everywhere := func(n int, priority uint16, to openflow.PortNo, m ...openflow.Field) {
		m = append(m, openflow.EthDst(s.to))
		s.flows = append(s.flows, foreignFlow{n, 0, priority, m, openflow.Actions{openflow.Output{Port: to}}})
	}
	switch draw("everywhere", 0, 3) {
	case 1:
		for n := range s.switches {
			everywhere(n, 60000, openflow.PortNo(draw("port", 2, 3)))
		}
	case 2: // a loop, if the cable at port 2 is not pulled: each switch sends back, and the first one sends to port 2
		everywhere(s.from, 60001, 2, openflow.InPort(1))
		for n := range s.switches {
			everywhere(n, 60000, openflow.PortInPort)
		}
	}
	for range draw("flows", 0, 3) {
		matches := []openflow.Match{{openflow.EthDst(mac("matches"))}, {openflow.InPort(openflow.PortNo(draw("in", 1, 4)))}, {openflow.AnyVLAN()}}
		does := []openflow.Actions{nil, {openflow.Output{Port: openflow.PortNo(draw("port", 1, 4))}}, {openflow.Output{Port: openflow.PortInPort}},
			{openflow.SetField{Field: openflow.EthDst(mac("set"))}, openflow.Output{Port: openflow.PortNo(draw("port", 1, 4))}}}
		s.flows = append(s.flows, foreignFlow{
			draw("switch", 0, s.switches-1), openflow.TableID(draw("table", 0, int(program.TableDeliver))), uint16(rapid.SampledFrom([]int{500, 60000}).Draw(t, "priority")),
			rapid.SampledFrom(matches).Draw(t, "match"), rapid.SampledFrom(does).Draw(t, "does"),
		})
	}
	return s
}

// compare returns what a trace says of the frame, and what happens to it in the switches.
func (s scene) compare(t *testing.T) (said, happened []string) {
	w := newWorld(t, s.switches, s.cables)
	w.settle(time.Second)
	w.ping(100 * time.Millisecond)
	w.settle(time.Second)
	topology, err := w.live.Topology()
	if err != nil {
		t.Fatal(err)
	}
	w.stop()         // it would change rules, and forward what it gets
	time.Sleep(tick) // its last discovery frames arrive
	for _, c := range s.pulled {
		w.cables[c].Unplug()
	}
	for _, f := range s.flows {
		w.foreign(f.sw, f.table, f.priority, f.match, f.actions...)
	}
	h := w.hosts[s.from]
	frame := oftest.UDPFrame(h.MAC(), s.to, netip.AddrPortFrom(h.Addr(false), 7), netip.MustParseAddrPort("10.0.0.250:7"), 60)
	got := trace.Run(t.Context(), topology, fabric.PortID{Switch: fabric.DPID(s.from + 1), Port: 1}, frame, func(_ context.Context, id fabric.DPID) (trace.Switch, error) {
		sw := w.sw[id-1]
		return trace.Switch{Flows: sw.Flows(), Groups: sw.Groups(), Ports: sw.Ports()}, nil
	})
	for _, hop := range got.Hops {
		for _, st := range hop.Steps {
			switch {
			case st.End == trace.Loop:
				said = append(said, "a loop")
			case st.Kind == pipeline.Output && (st.End == trace.Delivered || st.End == trace.NoHost):
				said = append(said, fmt.Sprintf("host %d: %x", hop.At.Switch, st.Frame))
			}
		}
	}
	for _, h := range w.hosts {
		h.Forget()
	}
	w.net.ResetStorm()
	h.Send(frame)
	time.Sleep(time.Second)
	synctest.Wait()
	for i, h := range w.hosts {
		for _, r := range h.Received() {
			happened = append(happened, fmt.Sprintf("host %d: %x", i+1, r.Frame))
		}
	}
	if storm := w.net.Storm(); storm.Looped+storm.Overflow > 0 {
		happened = append(happened, "a loop")
	}
	slices.Sort(said)
	slices.Sort(happened)
	return slices.Compact(said), slices.Compact(happened)
}

// In any network, with cables pulled and flows of other programs, a frame reaches the hosts that its trace says, as the trace says,
// and goes round if the trace says so.
func TestTraceIsTrue(t *testing.T) {
	delivered, looped := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		s := drawScene(r)
		synctest.Test(t, func(t *testing.T) {
			said, happened := s.compare(t)
			if !slices.Equal(said, happened) {
				r.Errorf("%+v\nthe trace says %q\nit happens that %q", s, said, happened)
			}
			if slices.Contains(said, "a loop") {
				looped++
			} else {
				delivered += len(said)
			}
		})
	})
	if !testing.Short() && (delivered == 0 || looped == 0) { // of the 20 networks of -short there may be none
		t.Errorf("%d deliveries and %d loops: the networks show nothing", delivered, looped)
	}
}
