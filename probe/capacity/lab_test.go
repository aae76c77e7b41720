package capacity_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
)

// The logs are from the lab: real kernels, an emulated link of a known rate with a shaper
// before it, both directions. They show the effect of real hosts on bursts: receivers
// that were idle are late with the first packets, and whole bursts are delayed.
//
// These are three of twelve logs. All at 100 and 400 Mbit/s are within 2 %. Of the twelve
// directions at 1 Gbit/s, where a small packet takes no longer than a receiver needs for
// it, six are off by more than 3 % (up to 11 %).
func TestLab(t *testing.T) {
	for name, want := range map[string]float64{"100Mbit.50Mbit.1600B": 100e6, "400Mbit.200Mbit.1600B": 400e6, "1Gbit.200Mbit.10kB": 1e9} {
		for direction, samples := range read(t, "testdata/"+name+".jsonl") {
			c := capacity.Bursts{}.Estimate(samples).Capacity
			t.Logf("%s, %s: %.1f Mbit/s (%.1f to %.1f) %s", name, direction, c.Value/1e6, c.Low/1e6, c.High/1e6, c.Reason)
			if math.Abs(c.Value/want-1) > 0.03 {
				t.Errorf("want %.0f Mbit/s", want/1e6)
			}
		}
	}
}

// read returns the samples of a log by direction. The times in the log are differences.
func read(t *testing.T, path string) map[string][]probe.Sample {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]probe.Sample{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // the head
	for lines.Scan() {
		var w struct {
			probe.Train
			Direction        string
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
		for i, n := range w.Packet {
			s.Arrived = append(s.Arrived, probe.Arrival{Number: int(n), At: w.At[i]})
		}
		out[w.Direction] = append(out[w.Direction], s)
	}
	return out
}
