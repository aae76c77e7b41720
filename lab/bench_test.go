package lab_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// cpuTime returns the CPU time of this process: both ends of the traffic generator, and the kernel's
// work of forwarding its packets.
func cpuTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The benchmarks behind the figures in doc comments. Each runs for 5 s, whatever b.N is:
//
//	go test ./lab -run '^$' -bench . -benchtime 1x
//
//	client ──RTT── router ── server
func BenchmarkPath(b *testing.B) {
	for _, c := range []struct {
		rtt   time.Duration
		proto traffic.Protocol
		flows int
		rate  unit.Rate // of each flow
	}{
		{0, traffic.TCP, 0, 0},
		{0, traffic.TCP, 1, 100 * unit.Mbit},
		{0, traffic.TCP, 4, 250 * unit.Mbit},
		{0, traffic.UDP, 4, 250 * unit.Mbit},
		{0, traffic.TCP, 300, unit.Mbit},
		{0, traffic.TCP, 1, traffic.Unlimited},
		{time.Millisecond, traffic.TCP, 0, 0},
		{time.Millisecond, traffic.TCP, 1, 100 * unit.Mbit},
		{time.Millisecond, traffic.TCP, 4, 250 * unit.Mbit},
		{100 * time.Millisecond, traffic.TCP, 0, 0},
		{100 * time.Millisecond, traffic.TCP, 1, 100 * unit.Mbit},
	} {
		rate := c.rate.String()
		if c.rate == traffic.Unlimited {
			rate = "unlimited"
		}
		b.Run(fmt.Sprintf("rtt=%v/%s=%dx%v", c.rtt, c.proto, c.flows, rate), func(b *testing.B) {
			l := labtest.Rig(b, lab.RigOptions{RTT: c.rtt})
			var flows []traffic.Flow
			for i := range c.flows {
				flows = append(flows, traffic.Flow{
					Name: fmt.Sprint(i), From: "client", To: "server", Protocol: c.proto, Schedule: traffic.Constant(c.rate),
				})
			}
			p, err := traffic.StartProbe(b.Context(), l.Host, traffic.Probe{Name: "p", From: "client", To: "server"})
			if err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			before := cpuTime()
			r, err := traffic.Run(b.Context(), l.Host, flows, traffic.Options{Duration: 5 * time.Second})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((cpuTime()-before).Seconds()/r.Seconds, "cores")
			probed, err := p.Stop()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(probed.RTT.P50Us, "rtt-p50-us")
			b.ReportMetric(probed.RTT.P99Us, "rtt-p99-us")
			var offered, delivered float64
			for _, f := range r.Flows {
				iv := f.Between(2*time.Second, 5*time.Second)
				offered += iv.OfferedRate()
				delivered += iv.DeliveredRate()
			}
			if c.flows > 0 {
				b.ReportMetric(delivered/1e6, "Mbit/s")
				b.ReportMetric(100*(delivered/offered-1), "%-off")
			}
			if s, ok := l.WireStats(0); ok {
				b.ReportMetric(float64(max(s[0].WorstLate, s[1].WorstLate).Microseconds()), "worst-late-us")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSetup measures how long it takes to create and remove a lab of 20 hosts and 30 links, with
// kernel and with emulated links: three routers in a ring with the hosts around them, of which seven
// have two links.
//
//	go test ./lab -run '^$' -bench Setup -benchtime 5x
func BenchmarkSetup(b *testing.B) {
	for _, backend := range []lab.Backend{lab.Veth, lab.Emulator} {
		b.Run(string(backend), func(b *testing.B) {
			labtest.NeedRoot(b)
			var up, down time.Duration
			for b.Loop() {
				topology := manyHosts(backend)
				begin := time.Now()
				l, err := lab.Up(b.Context(), topology)
				if err != nil {
					b.Fatal(err)
				}
				up += time.Since(begin)
				begin = time.Now()
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
				down += time.Since(begin)
			}
			b.ReportMetric(up.Seconds()/float64(b.N), "s-up")
			b.ReportMetric(down.Seconds()/float64(b.N), "s-down")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// manyHosts returns 20 hosts, 3 routers and 30 links.
func manyHosts(backend lab.Backend) *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("many")}
	join := func(a, b string) {
		p := lab.Limited(100 * unit.Mbit)
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{a, b}, Forward: p, Back: p, Backend: backend})
	}
	router := func(i int) string { return fmt.Sprintf("r%d", i%3) }
	for i := range 3 {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: router(i), Router: true})
		join(router(i), router(i+1))
	}
	for i := range 20 {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: fmt.Sprintf("h%d", i)})
		join(fmt.Sprintf("h%d", i), router(i))
		if i < 7 {
			join(fmt.Sprintf("h%d", i), router(i+1))
		}
	}
	return t
}
