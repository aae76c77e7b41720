package lab_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/unit"
)

func cpu() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestMeasure(t *testing.T) {
	if os.Getenv("M") == "" {
		t.Skip()
	}
	_ = runtime.NumCPU
	for _, c := range []struct {
		rtt   time.Duration
		rate  []unit.Rate
		proto traffic.Protocol
		cc    string
		limit unit.Rate
	}{
		{0, nil, "tcp", "", 0},
		{0, []unit.Rate{800 * unit.Kbit}, "tcp", "", 0},
		{0, []unit.Rate{100 * unit.Mbit}, "tcp", "", 0},
		{0, []unit.Rate{250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit}, "tcp", "", 0},
		{0, []unit.Rate{250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit}, "udp", "", 0},
		{0, []unit.Rate{25 * unit.Mbit, 25 * unit.Mbit, 25 * unit.Mbit, 25 * unit.Mbit}, "udp", "", 0},
		{0, []unit.Rate{traffic.Unlimited}, "tcp", "", 0},
		{0, []unit.Rate{traffic.Unlimited}, "udp", "", 0},
		{time.Millisecond, nil, "tcp", "", 0},
		{time.Millisecond, []unit.Rate{100 * unit.Mbit}, "tcp", "", 0},
		{time.Millisecond, []unit.Rate{traffic.Unlimited}, "tcp", "", 100 * unit.Mbit},
		{time.Millisecond, []unit.Rate{250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit, 250 * unit.Mbit}, "tcp", "", 0},
		{100 * time.Millisecond, nil, "tcp", "", 0},
		{100 * time.Millisecond, []unit.Rate{100 * unit.Mbit}, "tcp", "", 0},
		{100 * time.Millisecond, []unit.Rate{traffic.Unlimited}, "tcp", "", 100 * unit.Mbit},
		{100 * time.Millisecond, []unit.Rate{traffic.Unlimited}, "tcp", "bbr", 100 * unit.Mbit},
	} {
		t.Run(fmt.Sprintf("%v_%v_%s_%s_limit%v", c.rtt, c.rate, c.proto, c.cc, c.limit), func(t *testing.T) {
			l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: lab.UniqueName("measure"), RTT: c.rtt, Bottleneck: c.limit, In: true}))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var flows []traffic.Flow
			for i, r := range c.rate {
				flows = append(flows, traffic.Flow{Name: fmt.Sprint(i), From: "client", To: "server", Protocol: c.proto, Congestion: c.cc, Schedule: traffic.Constant(r)})
			}
			p, err := traffic.StartProbe(t.Context(), l.Host, traffic.Probe{Name: "p", From: "client", To: "server"})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			c0 := cpu()
			r, err := traffic.Run(t.Context(), l.Host, flows, traffic.Options{Duration: 8 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			used := cpu() - c0
			pr, err := p.Stop()
			t.Logf("probe sent %d lost %d rtt %+v %v", pr.Sent, pr.Lost, pr.RTT, err)
			t.Logf("cpu %.1f%% of a core", 100*used.Seconds()/r.Seconds)
			var sum, off float64
			for _, f := range r.Flows {
				b := f.Between(3*time.Second, 8*time.Second)
				sum += b.DeliveredRate()
				off += b.OfferedRate()
				t.Logf("  %s offered %.4g delivered %.5g retr %d lost %d/%d srtt %d cwnd %d %s", f.Name, b.OfferedRate(), b.DeliveredRate(), f.Total.Retransmits, f.Total.LostDatagrams, f.Total.Datagrams, b.SRTTus, b.CwndSegments, f.Error)
			}
			t.Logf("sum delivered %.6g of %.6g: %.3f%%", sum, off, 100*(sum/max(off, 1)-1))
			for i := range l.Topology.Links {
				if s, ok := l.WireStats(i); ok {
					t.Logf("wire %+v", s)
				}
			}
		})
	}
}
