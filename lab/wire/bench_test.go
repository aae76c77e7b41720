package wire_test

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
	"headgate.dev/headgate/unit"
)

// The benchmarks of the figures in doc.go. Each runs for some seconds, whatever b.N is:
//
//	go test ./lab/wire -run '^$' -bench . -benchtime 1x

// BenchmarkTCP measures one flow through a link at a rate. Results are of the time after the first 4
// s.
func BenchmarkTCP(b *testing.B) {
	for _, c := range []struct {
		rate unit.Rate
		rtt  time.Duration
	}{
		{500 * unit.Kbit, 20 * time.Millisecond},
		{10 * unit.Mbit, 20 * time.Millisecond},
		{100 * unit.Mbit, 20 * time.Millisecond},
		{unit.Gbit, 10 * time.Millisecond},
		{unit.Gbit, 50 * time.Millisecond},
		{5 * unit.Gbit, 10 * time.Millisecond},
		{10 * unit.Gbit, time.Millisecond},
		{10 * unit.Gbit, 10 * time.Millisecond},
	} {
		b.Run(fmt.Sprintf("%v/rtt=%v", c.rate, c.rtt), func(b *testing.B) {
			r := newRig(b, [2]wire.Options{{Link: link.Spec{Rate: c.rate, Delay: c.rtt / 2}}, {Link: delay(c.rtt)}})
			begin, length := 4*time.Second, 6*time.Second
			if c.rate < unit.Mbit {
				begin, length = 10*time.Second, 20*time.Second
			}
			s, err := traffic.Start(b.Context(), r.host, []traffic.Flow{flow(traffic.TCP, traffic.Unlimited)}, traffic.Options{Duration: begin + length})
			check(b, err)
			time.Sleep(begin)
			before, stolen := r.Stats(), steal()
			time.Sleep(length)
			after, part := r.Stats(), stolen()
			f := s.Wait().Flow("f")
			got := f.Between(begin, begin+length).DeliveredRate()
			b.ReportMetric(got/1e6, "Mbit/s")
			b.ReportMetric(100*(got/float64(c.rate)-1), "%-off")
			b.ReportMetric(100*part, "%-stolen")
			report(b, before, after)
		})
	}
}

// report reports the resources that the emulator used between two times.
func report(b *testing.B, before, after [2]wire.Stats) {
	var cpu, user, writing, writes, frames float64
	carried := float64(after[0].Bytes-before[0].Bytes) * 8 / (after[0].Duration - before[0].Duration).Seconds()
	b.ReportMetric(carried/1e6, "carried-Mbit/s")
	var worst time.Duration
	for i := range before {
		seconds := (after[i].Duration - before[i].Duration).Seconds()
		cpu += (after[i].CPU() - before[i].CPU()).Seconds() / seconds
		user += (after[i].User - before[i].User).Seconds() / seconds
		writing += (after[i].Writing - before[i].Writing).Seconds() / seconds
		writes += float64(after[i].Writes-before[i].Writes) / seconds
		frames += float64(after[i].Frames-before[i].Frames) / seconds
		worst = max(worst, after[i].WorstLate)
	}
	b.ReportMetric(100*cpu, "%-cpu")
	b.ReportMetric(100*user, "%-user")
	b.ReportMetric(100*writing, "%-writing")
	b.ReportMetric(writes, "writes/s")
	b.ReportMetric(frames, "frames/s")
	b.ReportMetric(float64(worst.Microseconds()), "worst-late-us")
	b.ReportMetric(float64(after[0].Late+after[1].Late-before[0].Late-before[1].Late), "late")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPing measures an idle link, or one that also carries 200 Mbit/s of UDP.
func BenchmarkPing(b *testing.B) {
	for _, load := range []unit.Rate{0, 200 * unit.Mbit} {
		for _, rtt := range []time.Duration{1, 10, 50, 100, 200, 600} {
			rtt *= time.Millisecond
			b.Run(fmt.Sprintf("load=%v/rtt=%v", load, rtt), func(b *testing.B) {
				r := newRig(b, both(wire.Options{Link: delay(rtt)}))
				p, err := traffic.StartProbe(b.Context(), r.host, traffic.Probe{Name: "p", From: "a", To: "b", Every: 5 * time.Millisecond})
				check(b, err)
				stolen, before := steal(), r.Stats()
				if load > 0 {
					r.run(b, flow(traffic.TCP, load), 8*time.Second)
				} else {
					time.Sleep(8 * time.Second)
				}
				part, after := stolen(), r.Stats()
				res, err := p.Stop()
				check(b, err)
				us := float64(rtt.Microseconds())
				b.ReportMetric(res.RTT.P50Us-us, "p50-off-us")
				b.ReportMetric(res.RTT.P99Us-us, "p99-off-us")
				b.ReportMetric(100*part, "%-stolen")
				report(b, before, after)
			})
		}
	}
}
