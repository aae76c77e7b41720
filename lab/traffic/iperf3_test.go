package traffic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/link"
	"headgate/lab/traffic"
	"headgate/unit"
)

// iperf3 runs one test from client to server and gives what the receiver got, in
// payload bits per second.
func iperf3(t testing.TB, l *lab.Lab, args ...string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	server := l.Node("server").Command(ctx, "iperf3", "-s", "-1", "--forceflush")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatalf("iperf3 is needed for this test: %v", err)
	}
	defer server.Wait()
	for s := bufio.NewScanner(out); s.Scan(); {
		if strings.Contains(s.Text(), "listening") {
			break
		}
	}
	text, err := l.Node("client").Command(ctx, "iperf3", append([]string{"-c", "10.0.1.2", "-J", "-C", "cubic"}, args...)...).Output()
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, text)
	}
	var r struct {
		End struct {
			SumReceived struct {
				Bps float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r.End.SumReceived.Bps
}

// Our generator and iperf3 find the same path the same, one after the other:
//
//	client ── router ── server      router to server is limited to 100 Mbit/s
//
// Payload within 1 %, and within 1 % of 1448/1514 of the rate.
func TestAgreesWithIperf3(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 100 * unit.Mbit, In: true, Queue: link.Amount{Time: 20 * time.Millisecond}})
	labtest.Try(t, func(t *labtest.Check) {
		theirs := iperf3(t, l, "-t", "4", "-O", "1")
		r := run(t, l, 5*time.Second, flow("f", traffic.TCP, traffic.Unlimited))
		iv := r.Flow("f").Between(time.Second, 5*time.Second)
		ours := float64(iv.DeliveredBytes) * 8 / iv.Seconds
		const right = 100e6 * 1448 / 1514
		t.Logf("ours %.0f, iperf3 %.0f, right %.0f bit/s", ours, theirs, right)
		if math.Abs(ours/theirs-1) > 0.01 || math.Abs(ours/right-1) > 0.01 {
			t.Errorf("ours %.0f, iperf3 %.0f, right %.0f bit/s", ours, theirs, right)
		}
	})
}
