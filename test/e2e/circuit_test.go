package e2e

import (
	"context"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// Real Open vSwitch bridges carry a circuit of UDP from h1 to h3 over s2 and s4, and not over the cable between s1 and s3: they take
// masks of ports, groups of groups and metadata, the meter holds the circuit to its limit, and its counters are read.
//
//	h1 - s1 - s2 - h2
//	      | \  |
//	h4 - s4 - s3 - h3
func TestCircuitOpenVSwitch(t *testing.T) {
	labtest.NeedRoot(t)
	l, n := leadSwitches(t)
	waitUntil(t, "all links are found", func() bool { p := n.Plan(); return n.Settled() && p != nil && len(p.Topology.Links()) == 10 })
	to, err := l.Node("h3").Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := pingOnce(l.Node("h1"), to); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	waitUntil(t, "it is settled", n.Settled)
	topology := n.Plan().Topology
	path := func(switches ...fabric.DPID) (p fabric.Path) {
		for i := range len(switches) - 1 {
			for _, l := range topology.Links() {
				if l.From.Switch == switches[i] && l.To.Switch == switches[i+1] {
					p = append(p, l.LinkID)
				}
			}
		}
		return p
	}
	end, ok := topology.HostWith(to, 0)
	if !ok {
		t.Fatalf("no host with %v is known", to)
	}
	var begin fabric.Host
	for _, h := range topology.Hosts() {
		if h.At.Switch == 1 {
			begin = h
		}
	}
	n.SetCircuits([]program.Circuit{{
		Number: 5, Name: "test", From: begin.At, To: end.At, Destination: netip.PrefixFrom(to, 32), Rate: 2 * unit.Mbit, Class: 1, DSCP: 46, Unresponsive: true,
		Flows: []program.Traffic{{Protocol: 17, Destination: program.Ports{First: 5000, Last: 5999}}},
		Paths: []fabric.Path{path(1, 2, 3), path(1, 4, 3)}, Spare: path(1, 3),
	}})
	state := func() (s program.CircuitState) {
		if all := n.Circuits(); len(all) == 1 {
			s = all[0]
		}
		return s
	}
	waitUntil(t, "the circuit is set", func() bool { return n.Settled() && len(state().InUse) == 2 })
	if s := state(); s.BestEffort || len(s.Lacks) > 0 || s.Meter == 0 {
		t.Fatalf("the circuit is %+v", s)
	}

	var receiver net.PacketConn
	var sender net.Conn
	if err := l.Node("h3").Do(func() (err error) { receiver, err = net.ListenPacket("udp4", ":5500"); return err }); err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	if err := l.Node("h1").Do(func() (err error) { sender, err = net.Dial("udp4", netip.AddrPortFrom(to, 5500).String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	const frame = 1042 // bytes, of which 1,000 are of the test
	var received atomic.Uint64
	go func() {
		for b := make([]byte, 2000); ; {
			if _, _, err := receiver.ReadFrom(b); err != nil {
				return
			}
			received.Add(frame)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // 8 Mbit/s
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			for range 10 {
				_, _ = sender.Write(make([]byte, 1000)) // what is not sent is not offered
			}
		}
	}()
	time.Sleep(time.Second) // with the burst
	read := func() (r live.CircuitReading) {
		for _, one := range n.ReadCircuits(ctx, nil) {
			if one.Number == 5 {
				r = one
			}
		}
		return r
	}
	measure := func() (r live.CircuitReading, rate float64) {
		before := read()
		bytes := received.Load()
		time.Sleep(2 * time.Second)
		r = read()
		if r.At.Sub(before.At) != r.Interval || r.Interval < 1990*time.Millisecond {
			t.Errorf("a reading at %v is followed by %+v", before.At, r)
		}
		return r, float64(received.Load()-bytes) * 8 / r.Interval.Seconds()
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got < 0.93*want || got > 1.07*want { // the machine can be busy, and the sender late
			t.Errorf("%s %.0f bit/s, want %.0f", what, got, want)
		}
	}
	r, rate := measure()
	t.Logf("%+v, %.0f bit/s received", r, rate)
	near("the meter passes", float64(r.Passed), 2e6)
	near("the host receives", rate, 2e6)
	if r.Offered < 5*unit.Mbit {
		t.Errorf("the meter is offered %v of 8 Mbit/s", r.Offered)
	}
	n.SetLimits(map[uint32]program.Limit{5: {Rate: 4 * unit.Mbit, Unresponsive: true}})
	time.Sleep(time.Second)
	r, rate = measure()
	t.Logf("%+v, %.0f bit/s received", r, rate)
	near("after a change of the limit the meter passes", float64(r.Passed), 4e6)
	near("after a change of the limit the host receives", rate, 4e6)
	stop()

	// One connection takes one of the two paths, and none of its frames the cable across, at port 4.
	time.Sleep(time.Second) // the counters of flows are up to date within one
	out, err := l.Switch("s3").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-flows", "s3", "table=5").CombinedOutput()
	var flows, packets int
	for _, f := range regexp.MustCompile(`n_packets=(\d+),.*in_port=(\d),.*dl_vlan_pcp=2`).FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.Atoi(f[1])
		if flows++; f[2] == "4" && n > 0 {
			t.Errorf("%d frames took the spare path", n)
		}
		packets += n
	}
	if err != nil || flows != 3 || packets < int(received.Load()/frame) {
		t.Errorf("%v: %d packets by %d flows, want %d by three: %s", err, packets, flows, received.Load()/frame, out)
	}
	if out, err := pingOnce(l.Node("h1"), to); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	n.SetCircuits(nil)
	waitUntil(t, "the circuit has ended", func() bool { return n.Settled() && len(n.Circuits()) == 0 })
}
