package available

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Equation 5.4: delays that only rise give 1, delays that return give 0.
func TestTrends(t *testing.T) {
	var up, flat []float64
	for i := range 100 {
		up = append(up, float64(i))
		flat = append(flat, float64(i%2))
	}
	if PDT(up) != 1 || PCT(up) != 1 || trendOf(up) != rises {
		t.Errorf("rising delays: PDT %.2f, PCT %.2f", PDT(up), PCT(up))
	}
	if p := PDT(flat); p > 0.02 || trendOf(flat) != doesNot {
		t.Errorf("delays that go up and down: PDT %.2f", p)
	}
	if PDT(nil) != 0 || PCT(nil) != 0 || trendOf(nil) != unclear {
		t.Error("no delays have a trend")
	}
}

// Figure 5.6: of the probes that arrive within a tick only the first counts, and its
// arrival time is that of the tick. Tick 3 is lost, which the number of the next tick
// shows. Tick 4 was sent late.
func TestTickDelays(t *testing.T) {
	s := probe.JointSample{
		Joint: probe.Joint{Trains: []probe.Train{probe.Uniform("", 6, 1500, 0), probe.Uniform("", 6, 500, 0)}},
		Sent:  [][]int64{{0, 10_000, 20_000, 30_000, 40_000, 50_000}, {7, 20_007, 40_007, 60_007, 85_007, 105_007}},
	}
	for _, a := range [][2]int{{1, 0}, {0, 0}, {1, 1}, {0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 4}, {1, 2}, {0, 4}, {0, 5}} {
		s.Arrived = append(s.Arrived, probe.JointArrival{From: a[0], Number: a[1]})
	}
	got := TickDelays(&s, 0, 1)
	if want := []float64{0, 10_000, 10_000, 45_000}; !slices.Equal(got, want) {
		t.Errorf("delays are %.0f, want %.0f", got, want)
	}
}

// The search converges to 300 of 1,000 Mbit/s with cross traffic that varies by 40 Mbit/s
// either way, and leaves the grey region out.
func TestSearch(t *testing.T) {
	s := search{high: 1e9, top: 1e9}
	for {
		rate, ok := s.next()
		if !ok {
			break
		}
		f := fleet{size: streams}
		switch {
		case rate > 340e6:
			f.rises = streams
		case rate < 260e6:
			f.doesNot = streams
		default:
			f.rises, f.doesNot = streams/2, streams/2
		}
		if s.take(rate, f); s.fleets > 30 {
			t.Fatal("the search does not terminate")
		}
	}
	if s.low > 260e6 || s.low < 220e6 || s.high < 340e6 || s.high > 380e6 {
		t.Errorf("the range is %.0f to %.0f Mbit/s", s.low/1e6, s.high/1e6)
	}
	// A fleet with too much loss means that the rate is too high.
	var lossy fleet
	lossy.add(doesNot, 0.2)
	if s.take(250e6, lossy); s.aborts != 1 || s.high != 250e6 {
		t.Errorf("%+v", s)
	}
}

// real reads a log of the lab's receivers: trains with times and numbers as Deltas.
func real(t *testing.T, file string) (samples []probe.Sample) {
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var w struct {
			probe.Train
			Sent, Packet, At []int64
		}
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		for _, d := range [][]int64{w.Sent, w.Packet, w.At} {
			for i := 1; i < len(d); i++ {
				d[i] += d[i-1]
			}
		}
		s := probe.Sample{Train: w.Train, Sent: w.Sent}
		for i := range w.Packet {
			s.Arrived = append(s.Arrived, probe.Arrival{Number: int(w.Packet[i]), At: w.At[i]})
		}
		samples = append(samples, s)
	}
	return samples
}

// The logs are from the lab's links of 1 Gbit/s, with kernel timestamps. In the first,
// the receiver takes 200 packets and then none for 5 ms. In the second there are a bucket
// of 300 Mbit/s with 100 Mbit/s of cross traffic, and stalled processors. In the third an
// unknown limiter releases 197 kB every 15 ms.
func TestLabLogs(t *testing.T) {
	for file, c := range map[string]struct {
		method HoldTrains
		want   float64
	}{
		"suspended.jsonl": {HoldTrains{Capacity: 1e9}, 1000e6},
		"bucket.jsonl":    {HoldTrains{Capacity: 1e9, TokenRate: 300e6}, 200e6},
		"interval.jsonl":  {HoldTrains{Capacity: 1e9}, 0},
	} {
		a := c.method.Estimate(real(t, file)).Available
		t.Logf("%s: %.0f (%.0f to %.0f) for %.0f Mbit/s; %s", file, a.Value/1e6, a.Low/1e6, a.High/1e6, c.want/1e6, a.Reason)
		if a.Known() != (c.want > 0) || math.Abs(a.Value-c.want) > 0.1*c.want {
			t.Errorf("%s is wrong", file)
		}
	}
}

// The method never exceeds its budget.
func TestBudget(t *testing.T) {
	for _, budget := range []unit.Bytes{10_000, 300_000, 1_000_000} {
		m := HoldTrains{Capacity: 1e9, TokenRate: 3e8, Budget: budget}
		var samples []probe.Sample
		sent := unit.Bytes(0)
		for range 100 {
			train, ok := m.Next(samples)
			if !ok {
				break
			}
			s := probe.Sample{Train: train}
			for i := range train.Count() {
				s.Sent = append(s.Sent, int64(len(samples))*1e9+int64(i)*12112)
				s.Arrived = append(s.Arrived, probe.Arrival{Number: i, At: s.Sent[i]})
			}
			samples = append(samples, s)
			sent += train.Bytes()
		}
		if sent > budget {
			t.Errorf("%v of %v were sent", sent, budget)
		}
	}
}
