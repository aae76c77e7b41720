//go:build vm

package lab_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// pftk returns a Reno sender's rate in segments per second at a loss probability p (J. Padhye, V.
// Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its Empirical
// Validation", SIGCOMM 1998, equation 30 without the window limit). Its b is 1: Linux's window grows
// with the acknowledged data, not with the number of acknowledgements (tcp_cong_avoid_ai).
func pftk(p float64, rtt, timeout time.Duration) float64 {
	const b = 1
	return 1 / (rtt.Seconds()*math.Sqrt(2*b*p/3) + timeout.Seconds()*min(1, 3*math.Sqrt(3*b*p/8))*p*(1+32*p*p))
}

// Reno over 50 ms and a netem with 0.1 or 1 % loss has the rate of PFTK within 40 %: 30 s of 0.1 %
// have about twenty losses, and an emulated processor increases the round-trip time, which is
// therefore measured. The rate limit behind it bounds only slow start.
func TestNetemRenoAgreesWithPFTK(t *testing.T) {
	for _, p := range []float64{0.001, 0.01} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			t.Parallel()
			labtest.Try(t, func(c *labtest.Check) { testPFTK(c, p) })
		})
	}
}

func testPFTK(t testing.TB, p float64) {
	const begin = 3 * time.Second
	length := 30 * time.Second
	if s, err := strconv.Atoi(os.Getenv("RENO_SECONDS")); err == nil { // the benchmark runs for longer
		length = time.Duration(s) * time.Second
	}
	l := netemRig(t, lab.NetemOptions{Delay: 25 * time.Millisecond, Loss: p, Rate: 30 * unit.Mbit, Queue: 300}, lab.NetemOptions{Delay: 25 * time.Millisecond})
	r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{{
		Name: "reno", From: "client", To: "server", Protocol: traffic.TCP, Congestion: "reno", Schedule: traffic.Constant(traffic.Unlimited),
	}}, traffic.Options{Duration: begin + length})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Flow("reno")
	iv := f.Between(begin, begin+length)
	rtt, samples := time.Duration(0), time.Duration(0)
	for _, i := range f.Intervals {
		if i.StartSeconds >= begin.Seconds() {
			rtt += time.Duration(i.SRTTus) * time.Microsecond
			samples++
		}
	}
	rtt /= samples
	// Linux's minimum: the round-trip time and 200 ms (TCP_RTO_MIN).
	want := pftk(p, rtt, rtt+200*time.Millisecond) * float64(f.FrameBytes) * 8
	got := iv.DeliveredRate()
	t.Logf("loss %v: %.2f Mbit/s, PFTK predicts %.2f (%+.0f %%); RTT %v, %d retransmissions", p, got/1e6, want/1e6, 100*(got/want-1), rtt, iv.Retransmits)
	if math.Abs(got/want-1) > 0.4 {
		t.Errorf("with a loss of %v Reno has %.2f Mbit/s; PFTK predicts %.2f", p, got/1e6, want/1e6)
	}
	if rtt < 50*time.Millisecond || rtt > 100*time.Millisecond {
		t.Errorf("the round trip is %v, over twice 25ms", rtt)
	}
}
