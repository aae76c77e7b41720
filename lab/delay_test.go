package lab_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A path with delay has its RTT, both idle and with 100 Mbit/s of TCP, all of which it carries:
//
//	client ──RTT── router ── server
//
// The median of probes every 5 ms is within 0.25 ms and 1 % of nominal; the plain path behind it takes about
// 0.05 ms, and 0.3 on a busy machine. The TCP throughput is within 1 %, because the last RTT of data is in flight when the run
// ends.
func TestDelay(t *testing.T) {
	for _, rtt := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(rtt.String(), func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) { testDelay(t, rtt) })
		})
	}
}

func testDelay(t testing.TB, rtt time.Duration) {
	l := labtest.Rig(t, lab.RigOptions{RTT: rtt})
	probe := func(length time.Duration, during func()) *traffic.ProbeResult {
		p, err := traffic.StartProbe(t.Context(), l.Host, traffic.Probe{Name: "p", From: "client", To: "server", IPv6: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(length)
		during()
		r, err := p.Stop()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	within := func(name string, r *traffic.ProbeResult) {
		t.Logf("%s: %+v, lost %d of %d", name, r.RTT, r.Lost, r.Sent)
		if math.Abs(r.RTT.P50Us-float64(rtt.Microseconds())) > 250+float64(rtt.Microseconds())/100 {
			t.Errorf("%s: median RTT %.0f us, want %v", name, r.RTT.P50Us, rtt)
		}
	}
	within("idle", probe(time.Second, func() {}))
	within("loaded", probe(0, func() {
		r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
			{Name: "f", From: "client", To: "server", Protocol: traffic.TCP, Schedule: traffic.Constant(100 * unit.Mbit)},
		}, traffic.Options{Duration: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Flow("f").Between(2*time.Second, 4*time.Second).DeliveredRate()
		if math.Abs(got-1e8) > 1e6 {
			t.Errorf("TCP got %.1f of 100 Mbit/s", got/1e6)
		}
	}))
	stats, ok := l.WireStats(0)
	if !ok {
		t.Fatal("the link with delay has no counts")
	}
	for _, s := range stats {
		t.Logf("%+v", s)
		if s.Dropped+s.Failed > 0 || s.Frames == 0 {
			t.Errorf("frames were lost: %+v", s)
		}
	}
}
