package lab_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// cpuTime is what this process has used: the generator's both ends, and the
// kernel's work of passing its packets on.
func cpuTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The figures behind doc comments. Each runs for 5 s, whatever b.N:
//
//	go test ./lab -run '^$' -bench . -benchtime 1x
//
//	client ──RTT── router ── server
func BenchmarkPath(b *testing.B) {
	for _, c := range []struct {
		rtt   time.Duration
		proto traffic.Protocol
		flows int
		rate  unit.Rate // of each
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
