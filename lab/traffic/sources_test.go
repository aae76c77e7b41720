package traffic_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A flow offers load only between its start and its stop:
//
//	client ── router ── server      10 Mbit/s from 1 to 3 s
//
// Interval by interval, within 6 % of 10 Mbit/s.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{})
	for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
		labtest.Try(t, func(t *labtest.Check) {
			f := flow("f", proto, 10*unit.Mbit)
			f.Start, f.Stop = time.Second, 3*time.Second
			got := run(t, l, 4*time.Second, f).Flow("f")
			for second, want := range []float64{0, 10e6, 10e6, 0} {
				if rate := got.Intervals[second].DeliveredRate(); math.Abs(rate-want) > 0.6e6 {
					t.Errorf("%s, second %d: %.2f Mbit/s delivered, want %.0f", proto, second, rate/1e6, want/1e6)
				}
			}
			if math.Abs(got.Total.OfferedL2Bits-20e6) > 1 {
				t.Errorf("%s: %.0f bits were offered, want 20 Mbit", proto, got.Total.OfferedL2Bits)
			}
		})
	}
}

// On-off flows deliver what they offer, over TCP and UDP, and offer the same again with the same seed:
//
//	client ── router ── server      20 Mbit/s while on
//
// The offered bits of two runs are equal within 2 % of 20 Mbit/s, as the runs end some ms apart.
// Delivered is what was offered within 2 % and 60 kbit.
func TestOnOffFlows(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{})
	turn := func(kind traffic.Kind, shape float64, mean time.Duration) traffic.Distribution[time.Duration] {
		return traffic.Distribution[time.Duration]{Kind: kind, Shape: shape, Mean: mean}
	}
	labtest.Try(t, func(t *labtest.Check) {
		offered := func(seed uint64) (bits [2]float64) {
			var flows []traffic.Flow
			for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
				f := flow(string(proto), proto, 0)
				f.Schedule = nil
				f.OnOff = &traffic.OnOff{Rate: 20 * unit.Mbit, On: turn(traffic.Exponential, 0, 100*time.Millisecond), Off: turn(traffic.Pareto, 1.5, 100*time.Millisecond)}
				flows = append(flows, f)
			}
			r, err := traffic.Run(t.Context(), l.Host, flows, traffic.Options{Duration: 3 * time.Second, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range r.Flows {
				t.Logf("%s: offered %.0f, delivered %.0f", f.Name, f.Total.OfferedL2Bits, f.Total.DeliveredL2Bits)
				if math.Abs(f.Total.DeliveredL2Bits-f.Total.OfferedL2Bits) > 0.02*f.Total.OfferedL2Bits+60e3 {
					t.Errorf("%s: delivered %.0f of %.0f bits", f.Name, f.Total.DeliveredL2Bits, f.Total.OfferedL2Bits)
				}
				bits[i] = f.Total.OfferedL2Bits
			}
			return bits
		}
		a, b, c := offered(11), offered(11), offered(12)
		for i := range a {
			if math.Abs(a[i]-b[i]) > 0.02*20e6 {
				t.Errorf("flow %d offered %.0f bits, and with the same seed %.0f", i, a[i], b[i])
			}
			if math.Abs(a[i]-c[i]) < 1000 {
				t.Errorf("flow %d offered %.0f bits with either seed", i, a[i])
			}
		}
	})
}

// Poisson datagrams are sent one by one, at their own times:
//
//	client ── router ── server      10 Mbit/s, 826 datagrams a second
//
// Their number is within 4 sigma of 3 s, none is lost, and the jitter of a path without any is below
// 0.2 ms (the send times include the program's wake-up).
func TestPoissonFlow(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{})
	labtest.Try(t, func(t *labtest.Check) {
		f := flow("f", traffic.UDP, 0)
		f.Schedule, f.Poisson = nil, &traffic.Poisson{Rate: 10 * unit.Mbit}
		got := run(t, l, 3*time.Second, f).Flow("f").Total
		want := 3 * 10e6 / (1514 * 8)
		t.Logf("%d datagrams, want %.0f, jitter %.1f us", got.Datagrams, want, got.JitterUs)
		if math.Abs(float64(got.Datagrams)-want) > 4*math.Sqrt(want)+1 || got.LostDatagrams > 0 || got.JitterUs > 200 || got.JitterUs == 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Messages are sent at their own times over one connection, and are queued if the connection is too
// slow:
//
//	client ── router ── server      router to server is limited to 10 Mbit/s
//
// 4 Mbit/s in messages of 8 to 16 KB, 41 a second, are delivered as they are offered: in bursts, whose
// bytes in 100 ms differ by about half of their mean. The rate of all 203 messages has a standard
// deviation of 7.1 % (of their number 7.0 %, and their sizes differ by 19 %) and is within four of them.
// Of 20 Mbit/s (3.2 %) nothing is discarded: what is not delivered is still queued.
func TestMessages(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 10 * unit.Mbit, In: true})
	labtest.Try(t, func(t *labtest.Check) {
		messages := func(rate unit.Rate) *traffic.FlowResult {
			f := flow("f", traffic.TCP, 0)
			f.Schedule, f.Backlog = nil, time.Hour
			f.Poisson = &traffic.Poisson{Rate: rate, Size: traffic.Distribution[unit.Bytes]{Kind: traffic.Uniform, Min: 8192, Max: 16384}}
			r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{Duration: 5 * time.Second, Interval: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			return r.Flow("f")
		}
		got := messages(4 * unit.Mbit)
		if r := got.Total.OfferedL2Bits / 5; math.Abs(r-4e6) > 4*0.071*4e6 || math.Abs(got.Total.DeliveredL2Bits-got.Total.OfferedL2Bits) > 0.3e6 {
			t.Errorf("offered %.2f Mbit/s, delivered %.2f", r/1e6, got.Total.DeliveredL2Bits/5e6)
		}
		squares := 0.0
		for _, iv := range got.Intervals {
			squares += math.Pow(iv.OfferedRate()/4e6-1, 2)
		}
		if spread := math.Sqrt(squares / float64(len(got.Intervals))); spread < 0.3 || spread > 0.8 {
			t.Errorf("messages' bytes in 100 ms differ by %.2f of their mean, want 0.5", spread)
		}
		got = messages(20 * unit.Mbit)
		if r := got.Total.DeliveredL2Bits / 5; r < 9e6 || got.Total.OfferedL2Bits < (1-4*0.032)*100e6 {
			t.Errorf("offered %.2f Mbit/s, delivered %.2f", got.Total.OfferedL2Bits/5e6, r/1e6)
		}
	})
}

// Jitter shows a queue that fills and empties:
//
//	client ── router ── server      router to server is limited to 20 Mbit/s
//
// A constant 1 Mbit/s besides another flow that is on at 100 Mbit/s for 20 ms in every 100: the queue
// of 30 ms fills and empties, and the jitter of the constant flow is milliseconds. Without the other
// flow it is below 0.2 ms.
func TestJitterOfAQueue(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 20 * unit.Mbit, In: true, Queue: link.Amount{Time: 30 * time.Millisecond}})
	labtest.Try(t, func(t *labtest.Check) {
		steady := flow("steady", traffic.UDP, unit.Mbit)
		steady.Payload = 200
		alone := run(t, l, 2*time.Second, steady).Flow("steady").Total.JitterUs
		burst := flow("burst", traffic.UDP, 0)
		burst.Schedule, burst.OnOff = nil, &traffic.OnOff{Rate: 100 * unit.Mbit, On: traffic.Always(20 * time.Millisecond), Off: traffic.Always(80 * time.Millisecond)}
		var worst float64
		r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{steady, burst}, traffic.Options{Duration: 2 * time.Second, Interval: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for _, iv := range r.Flow("steady").Intervals {
			worst = max(worst, iv.JitterUs)
		}
		t.Logf("alone %.0f us, with bursts up to %.0f", alone, worst)
		if alone > 200 || worst < 500 {
			t.Errorf("jitter %.0f us alone, %.0f us with bursts", alone, worst)
		}
	})
}
