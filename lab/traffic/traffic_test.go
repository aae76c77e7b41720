package traffic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func flow(name string, p traffic.Protocol, r unit.Rate) traffic.Flow {
	return traffic.Flow{Name: name, From: "client", To: "server", Protocol: p, Schedule: traffic.Constant(r)}
}

func run(t testing.TB, l *lab.Lab, length time.Duration, flows ...traffic.Flow) *traffic.Result {
	t.Helper()
	r, err := traffic.Run(t.Context(), l.Host, flows, traffic.Options{Duration: length})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Flows {
		if f.Error != "" {
			t.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	return r
}

// cpuTime returns the CPU time of this process, including the kernel's for its packets.
func cpuTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The load that is offered over an unlimited path is delivered, within 0.3 % over 3 s and one frame:
//
//	client ── router ── server
//
// Both ends take well under one core (the limit is 0.6; 0.2 to 0.3 is usual).
func TestOfferedIsDelivered(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	for _, total := range []unit.Rate{800 * unit.Kbit, 100 * unit.Mbit, 1000 * unit.Mbit} {
		for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
			for _, ipv6 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%s/ipv6=%v", total, proto, ipv6), func(t *testing.T) {
					labtest.Try(t, func(t *labtest.Check) { testOffered(t, l, total, proto, ipv6) })
				})
			}
		}
	}
}

func testOffered(t testing.TB, l *lab.Lab, total unit.Rate, proto traffic.Protocol, ipv6 bool) {
	var flows []traffic.Flow
	for i := range 4 {
		f := flow(fmt.Sprint(i), proto, total/4)
		f.IPv6 = ipv6
		flows = append(flows, f)
	}
	before := cpuTime()
	r := run(t, l, 2*time.Second, flows...)
	cores := (cpuTime() - before).Seconds() / r.Seconds
	for _, f := range r.Flows {
		off := f.Total.DeliveredL2Bits - f.Total.OfferedL2Bits
		if math.Abs(off) > 0.003*f.Total.OfferedL2Bits+float64(8*f.FrameBytes) {
			t.Errorf("flow %s: delivered %.0f of %.0f bits", f.Name, f.Total.DeliveredL2Bits, f.Total.OfferedL2Bits)
		}
		if f.Total.LostDatagrams > 0 {
			t.Errorf("flow %s: %d datagrams were lost", f.Name, f.Total.LostDatagrams)
		}
	}
	t.Logf("%.2f cores", cores)
	if cores > 0.6 {
		t.Errorf("%.2f cores were used", cores)
	}
}

// Hundreds of flows in one process, each at its rate:
//
//	client ── router ── server      300 TCP flows of 300 kbit/s, within 2 %
func TestManyFlows(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	var flows []traffic.Flow
	for i := range 300 {
		f := flow(fmt.Sprint(i), traffic.TCP, 300*unit.Kbit)
		f.DstPort = 5001 // all to one port, as to one service
		flows = append(flows, f)
	}
	labtest.Try(t, func(t *labtest.Check) {
		before := cpuTime()
		r := run(t, l, 3*time.Second, flows...)
		t.Logf("%.2f cores", (cpuTime()-before).Seconds()/r.Seconds)
		for _, f := range r.Flows {
			if got := f.Total.DeliveredRate(); math.Abs(got/300e3-1) > 0.02 {
				t.Errorf("flow %s got %.0f bit/s", f.Name, got)
			}
		}
	})
}

// A flow follows its schedule in time, also down to 0, and an unlimited part uses the bandwidth of the
// path:
//
//	client ── router ── server      router to server is limited to 50 Mbit/s
//
// Interval by interval, within 6 % of 50 Mbit/s: the interval after the overload also has the contents
// of the bottleneck's queue (20 ms) and the socket (4 ms of 200 Mbit/s).
func TestSchedule(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 50 * unit.Mbit, In: true, Queue: link.Amount{Time: 20 * time.Millisecond}})
	for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
		t.Run(string(proto), func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) { testSchedule(t, l, proto) })
		})
	}
}

func testSchedule(t testing.TB, l *lab.Lab, proto traffic.Protocol) {
	f := flow("f", proto, 0)
	f.Schedule = []traffic.Step{
		{At: time.Second, Rate: 10 * unit.Mbit}, {At: 2 * time.Second, Rate: 40 * unit.Mbit},
		{At: 3 * time.Second, Rate: 0}, {At: 4 * time.Second, Rate: 200 * unit.Mbit}, {At: 6 * time.Second, Rate: 0},
	}
	r := run(t, l, 7*time.Second, f)
	for second, want := range []float64{0, 10e6, 40e6, 0, 50e6, 50e6, 0} {
		iv := r.Flow("f").Intervals[second]
		if got := iv.DeliveredRate(); math.Abs(got-want) > 0.06*50e6 {
			t.Errorf("second %d: %.2f Mbit/s delivered, want %.0f", second, got/1e6, want/1e6)
		}
	}
	if proto == traffic.UDP && r.Flow("f").Total.LostDatagrams == 0 {
		t.Error("200 Mbit/s through 50 lost no datagram")
	}
	// Discarded data is not offered again: at most 100 ms of 200 Mbit/s.
	if sent := r.Flow("f").Total.SentBytes * 8; proto == traffic.TCP && sent > 180e6 {
		t.Errorf("TCP took %d bits in all", sent)
	}
}

// Every option takes effect on the packets and sockets:
//
//	client ── router ── server      a download: server port 80 sends
func TestFlowOptions(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	f := traffic.Flow{
		Name: "f", From: "server", To: "client", Protocol: traffic.TCP, Download: true, SrcPort: 80, DstPort: 4000,
		Congestion: "reno", DSCP: 10, IPv6: true, Schedule: traffic.Constant(10 * unit.Mbit),
	}
	s, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := s.Conn("f")
	if err != nil || from.String() != "[fd00:0:0:1::2]:80" || to.String() != "[fd00::1]:4000" {
		t.Errorf("connection %v to %v, error %v", from, to, err)
	}
	// Class 0x28 is DSCP 10; every data segment has it.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := l.Node("router").Command(ctx, "tcpdump", "-n", "-v", "-c", "20", "-i", "server", "ip6 and tcp src port 80").CombinedOutput()
	if err != nil || strings.Count(string(out), "class 0x28") != 20 {
		t.Errorf("packets: %v\n%s", err, out)
	}
	if err := s.SetRate("f", 20*unit.Mbit); err != nil {
		t.Error(err)
	}
	time.Sleep(500 * time.Millisecond)
	s.Stop()
	r := s.Wait()
	got := r.Flow("f")
	if got.Congestion != "reno" || got.FrameBytes != 1514 || got.PayloadBytes != 1428 || got.Error != "" {
		t.Errorf("result %+v", got)
	}
	last := got.Intervals[len(got.Intervals)-2].DeliveredRate()
	if math.Abs(last-20e6) > 2e6 {
		t.Errorf("after SetRate %.1f Mbit/s, want 20", last/1e6)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestStartErrors(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	for want, change := range map[string]func(*traffic.Flow){
		`no node "nobody"`:                func(f *traffic.Flow) { f.To = "nobody" },
		`no congestion control "nothing"`: func(f *traffic.Flow) { f.Congestion = "nothing" },
		`flow "f": `:                      func(f *traffic.Flow) { f.Schedule = []traffic.Step{{At: -1}} },
	} {
		f := flow("f", traffic.TCP, unit.Mbit)
		change(&f)
		if _, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// A probe measures the path's RTT and both directions, each of which is half of it:
//
//	client ──10 ms── router ── server
//
// Medians within 0.3 ms; no probe is lost.
func TestProbe(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{RTT: 10 * time.Millisecond})
		p, err := traffic.StartProbe(t.Context(), l.Host, traffic.Probe{Name: "p", From: "client", To: "server", DSCP: 46, Every: 2 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r, err := p.Stop()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v %+v %+v, %d sent, %d lost", r.RTT, r.There, r.Back, r.Sent, r.Lost)
		if r.Lost > 0 || r.Sent < 300 {
			t.Errorf("%d of %d probes were lost", r.Lost, r.Sent)
		}
		for _, c := range []struct{ got, want float64 }{{r.RTT.P50Us, 10_000}, {r.There.P50Us, 5000}, {r.Back.P50Us, 5000}} {
			if math.Abs(c.got-c.want) > 300 {
				t.Errorf("median %.0f us, want %.0f", c.got, c.want)
			}
		}
	})
}

// Receive timestamps are taken after a queue in the host's own ingress, so that a probe measures the
// effect of a group "in":
//
//	client ── router ── [ingress ─ IFB 20 Mbit/s, 40 ms of queue] server
//
// 40 Mbit/s of UDP keep the queue full. Most probes are lost in it; the median of the others is 30 to
// 45 ms on the way there, and not increased on the way back.
func TestProbeSeesIngressQueue(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{})
		for _, line := range []string{
			"ip link add ifb0 type ifb",
			"ip link set ifb0 up",
			"tc qdisc add dev ifb0 root tbf rate 20mbit burst 20000 limit 100000",
			"tc qdisc add dev router clsact",
			"tc filter add dev router ingress protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0",
		} {
			labtest.Run(t, l.Node("server"), "sh", "-c", line)
		}
		p, err := traffic.StartProbe(t.Context(), l.Host, traffic.Probe{Name: "p", From: "client", To: "server"})
		if err != nil {
			t.Fatal(err)
		}
		run(t, l, 2*time.Second, flow("f", traffic.UDP, 40*unit.Mbit))
		r, err := p.Stop()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("there %+v, back %+v, lost %d of %d", r.There, r.Back, r.Lost, r.Sent)
		if r.There.P50Us < 30e3 || r.There.P50Us > 45e3 || r.Back.P50Us > 1e3 {
			t.Errorf("there %.0f us, back %.0f us", r.There.P50Us, r.Back.P50Us)
		}
	})
}
