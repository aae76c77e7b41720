package lab_test

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A limited path carries its rate in layer-2 bytes, by the kernel's receive timestamps, over 2 s (8 s
// at 0.8 Mbit/s, 15 ms a frame) after a start of 1 s:
//
//	client ── router ── server      router to server is limited
//
// UDP that offers 120 % gets the rate within 1 %, which allows for late timers of a busy machine; one
// TCP flow fills at least 95 % of it, including losses.
func TestRate(t *testing.T) {
	for _, rate := range []unit.Rate{800 * unit.Kbit, 10 * unit.Mbit, 101 * unit.Mbit, 500 * unit.Mbit, 1010 * unit.Mbit} {
		for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
			t.Run(fmt.Sprintf("%v/%s", rate, proto), func(t *testing.T) {
				if rate < 100*unit.Mbit {
					t.Parallel() // slow tests leave the machine to others
				}
				labtest.Try(t, func(t *labtest.Check) { testRate(t, rate, proto) })
			})
		}
	}
}

func testRate(t testing.TB, rate unit.Rate, proto traffic.Protocol) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: rate, In: true})
	begin, length := time.Second, 2*time.Second
	if rate < unit.Mbit {
		length = 8 * time.Second
	}
	m, err := meter.New(meter.Options{Length: begin + length})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{{
		Name: "f", From: "client", To: "server", Protocol: proto, Schedule: traffic.Constant(rate * 12 / 10),
	}}, traffic.Options{Duration: begin + length, OnReceiver: m.Watch})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(s.StartMonotonicNs()); err != nil {
		t.Fatal(err)
	}
	s.Wait()
	series, err := m.Series("f")
	if err != nil {
		t.Fatal(err)
	}
	got := series.Rate(begin, begin+length)
	off := got/float64(rate) - 1
	t.Logf("%.0f bit/s, %+.3f %%", got, 100*off)
	lowest := -0.01
	if proto == traffic.TCP {
		lowest = -0.05
	}
	if off < lowest || off > 0.01 {
		t.Errorf("%v carries %.0f bit/s", rate, got)
	}
}

// A link with a rate and a delay, in the emulator; the opposite direction has no rate:
//
//	client ──2 ms── router ── server      router to client is limited to 300 Mbit/s
//
// 250 Mbit/s offered for 2 s in each direction arrive within 1 %, without loss. On a busy machine the
// sender may stall, which it reports, and offer less. UDP of this rate is sent in super-packets
// (UDP_SEGMENT), which reach the emulator whole unless offload is off.
func TestRateAndDelay(t *testing.T) {
	for _, noOffload := range []bool{false, true} {
		t.Run(fmt.Sprintf("offload=%v", !noOffload), func(t *testing.T) {
			l := labtest.Rig(t, lab.RigOptions{RTT: 2 * time.Millisecond, Bottleneck: 300 * unit.Mbit, NoOffload: noOffload})
			for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
				for _, ipv6 := range []bool{false, true} {
					labtest.Try(t, func(t *labtest.Check) { testBothWays(t, l, proto, ipv6) })
				}
			}
			s, _ := l.WireStats(0)
			t.Logf("%+v", s)
			// 2 times 2 s of 250 Mbit/s of UDP: 83,000 frames, or 2,000 super-packets.
			if whole := s[0].Frames < 60_000; whole == noOffload {
				t.Errorf("%d frames crossed the emulator", s[0].Frames)
			}
		})
	}
}

func testBothWays(t testing.TB, l *lab.Lab, proto traffic.Protocol, ipv6 bool) {
	f := traffic.Flow{Name: "down", From: "server", To: "client", Protocol: proto, IPv6: ipv6, Schedule: traffic.Constant(250 * unit.Mbit)}
	g := f
	g.Name, g.From, g.To = "up", f.To, f.From
	r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{f, g}, traffic.Options{Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	stalled := 0.0
	for _, s := range r.Stalls {
		stalled += s.Seconds
	}
	high := 250e6 * r.Seconds
	low := high - 250e6*stalled
	for _, f := range r.Flows {
		got := f.Total.DeliveredL2Bits
		t.Logf("%s %s ipv6=%v: %.1f of %.0f Mbit, stalled for %.3f s", f.Name, proto, ipv6, got/1e6, high/1e6, stalled)
		if got < 0.99*low || got > 1.01*high || f.Total.LostDatagrams > 0 {
			t.Errorf("%s %s ipv6=%v: %.1f of %.1f to %.1f Mbit, %d lost", f.Name, proto, ipv6, got/1e6, low/1e6, high/1e6, f.Total.LostDatagrams)
		}
	}
}
