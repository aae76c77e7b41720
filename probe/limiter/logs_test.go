package limiter

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"testing"

	"headgate.dev/headgate/probe"
)

// readLog reads the samples of a log of `headgate probe` whose trains all have one
// direction. Times in the log are differences.
func readLog(t *testing.T, name string) (samples []probe.Sample) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	lines.Scan() // the header
	for lines.Scan() {
		var line struct {
			probe.Train
			Sent     []int64
			Packet   []int
			At       []int64
			Overflow int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := probe.Sample{Train: line.Train, Sent: line.Sent, Overflow: line.Overflow}
		for i := 1; i < len(s.Sent); i++ {
			s.Sent[i] += s.Sent[i-1]
		}
		n, at := 0, int64(0)
		for i := range line.At {
			n, at = n+line.Packet[i], at+line.At[i]
			s.Arrived = append(s.Arrived, probe.Arrival{Number: n, At: at})
		}
		samples = append(samples, s)
	}
	return samples
}

// The logs have trains over real paths of the lab: a link of 1 Gbit/s with a queue of 200
// ms and one limiter, between hosts whose processors sometimes stall for milliseconds.
// Held packets are released every 2 to 3 us, and trains are sent at 15 to 50 Gbit/s. The log policer-and-stalls is of a link of 50 Mbit/s between two switches in
// user space, which stall often.
func TestLogs(t *testing.T) {
	for _, log := range []struct {
		name  string
		class Class
		at    Place
		check func(Result) (value, want float64)
		off   float64 // relative; 0 is 0.05
	}{
		{"xen", Xen, Path, func(r Result) (float64, float64) { return r.Ticks.Packets.Value, 130.1 }, 0},
		{"xen-and-stalls", Xen, Path, func(r Result) (float64, float64) { return r.Ticks.Interval.Value, 15e6 }, 0},
		{"suspended-receiver", Scheduling, Receiver, func(r Result) (float64, float64) { return r.Schedules[0].Packets.Value, 200 }, 0},
		{"sleeping-sender", Scheduling, Path, func(r Result) (float64, float64) { return r.Schedules[0].Sleeping.Value, 15e6 }, 0},
		{"policer", Policer, Path, func(r Result) (float64, float64) { return r.Bucket.Rate.Value, 200e6 }, 0},
		{"policer-and-stalls", Policer, Path, func(r Result) (float64, float64) { return r.Bucket.Rate.Value, 30e6 }, 0.005},
		{"shared-bucket", TBF, Path, func(r Result) (float64, float64) { return r.Bucket.Rate.Value, 300e6 }, 0},
		{"loss-and-stalls", None, "", nil, 0},
		{"cross-traffic", None, "", nil, 0},
	} {
		r := Detector{Capacity: 1e9}.Estimate(readLog(t, "testdata/"+log.name+".log"))
		t.Logf("%s: %s %s at the %s, %.2f; %v; %s", log.name, r.Class, r.Cannot, r.At, r.Confidence, r.Doubts, r.Why)
		if r.Class != log.class || r.At != log.at {
			t.Errorf("%s: detected %s at the %s", log.name, r.Class, r.At)
			continue
		}
		if log.check != nil {
			if value, want := log.check(r); math.Abs(value/want-1) > cmp.Or(log.off, 0.05) {
				t.Errorf("%s: %.4g, want %.4g", log.name, value, want)
			}
		}
	}
}
