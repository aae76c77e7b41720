package traffic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// theirs is the result of iperf3's receiver.
type theirs struct {
	Bps     float64 `json:"bits_per_second"` // of payload
	Lost    float64 `json:"lost_packets"`
	Packets float64 `json:"packets"`
	Jitter  float64 `json:"jitter_ms"`
}

// iperf3 runs one test from client to server.
func iperf3(t testing.TB, l *lab.Lab, args ...string) theirs {
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
	text, err := l.Node("client").Command(ctx, "iperf3", append([]string{"-c", "10.0.1.2", "-J"}, args...)...).Output()
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, text)
	}
	var r struct {
		End struct {
			Received *theirs `json:"sum_received"`
			Sum      theirs  `json:"sum"` // for UDP: sent and received together
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "-u") {
		return *r.End.Received
	}
	return r.End.Sum
}

// This generator and iperf3 measure the same on the same path, one after the other:
//
//	client ── router ── server      router to server is limited to 100 Mbit/s
//
// The payload rates agree within 1 %, and with 1448/1514 of the link rate within 1 %. The number of
// retransmissions is that of the kernel for the whole namespace. Segments that are missing account for
// the retransmissions of lost ones.
func TestAgreesWithIperf3(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 100 * unit.Mbit, In: true, Queue: link.Amount{Time: 20 * time.Millisecond}})
	labtest.Try(t, func(t *labtest.Check) {
		theirs := iperf3(t, l, "-t", "4", "-O", "1", "-C", "cubic").Bps
		before := retransmitted(t, l)
		r := run(t, l, 5*time.Second, flow("f", traffic.TCP, traffic.Unlimited))
		kernel := retransmitted(t, l) - before
		iv := r.Flow("f").Between(time.Second, 5*time.Second)
		ours := float64(iv.DeliveredBytes) * 8 / iv.Seconds
		const right = 100e6 * 1448 / 1514
		t.Logf("ours %.0f, iperf3 %.0f, correct %.0f bit/s; %d retransmitted, the kernel counts %d", ours, theirs, right, r.Flow("f").Total.Retransmits, kernel)
		if math.Abs(ours/theirs-1) > 0.01 || math.Abs(ours/right-1) > 0.01 {
			t.Errorf("ours %.0f, iperf3 %.0f, correct %.0f bit/s", ours, theirs, right)
		}
		// The kernel may send a few more between the last sample and the end.
		if got := r.Flow("f").Total.Retransmits; got > kernel || kernel > got+got/100+10 || kernel == 0 {
			t.Errorf("%d segments were retransmitted, the kernel counts %d", got, kernel)
		}
		// Lost segments were retransmitted; segments in flight are missing as well.
		all := r.Flow("f").Total
		lost, missing := all.Retransmits-min(all.Duplicates, all.Retransmits), uint64(all.MissingSegments)
		t.Logf("%d lost, %d missing, a window of %d", lost, missing, all.CwndSegments)
		if slack := lost/50 + 10; lost == 0 || missing+slack < lost || missing > lost+2*uint64(all.CwndSegments)+slack {
			t.Errorf("%d segments were lost, and %d are missing with a window of %d", lost, missing, all.CwndSegments)
		}
	})
}

// The same for UDP with a fifth lost: 120 Mbit/s into 100. The delivered payload and the loss ratio
// agree, each within 1 %.
func TestAgreesWithIperf3OnUDP(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 100 * unit.Mbit, In: true, Queue: link.Amount{Time: 20 * time.Millisecond}})
	labtest.Try(t, func(t *labtest.Check) {
		// iperf3's -b is payload.
		theirs := iperf3(t, l, "-t", "4", "-u", "-l", "1472", "-b", strconv.Itoa(120_000_000*1472/1514))
		iv := run(t, l, 5*time.Second, flow("f", traffic.UDP, 120*unit.Mbit)).Flow("f").Between(time.Second, 5*time.Second)
		ours, lost := float64(iv.DeliveredBytes)*8/iv.Seconds, float64(iv.LostDatagrams)/float64(iv.Datagrams)
		theirLoss := theirs.Lost / theirs.Packets
		theirRate := theirs.Bps * (1 - theirLoss) // sent minus lost
		t.Logf("ours %.0f, iperf3 %.0f bit/s; lost %.2f %% and %.2f %%; jitter %.0f and %.0f us", ours, theirRate, 100*lost, 100*theirLoss, iv.JitterUs, 1e3*theirs.Jitter)
		if math.Abs(ours/theirRate-1) > 0.01 || math.Abs(lost-theirLoss) > 0.01 {
			t.Errorf("ours %.0f, iperf3 %.0f bit/s; lost %.2f %% and %.2f %%", ours, theirRate, 100*lost, 100*theirLoss)
		}
	})
}

// retransmitted returns the kernel's count of TCP segments that the client retransmitted.
func retransmitted(t testing.TB, l *lab.Lab) uint64 {
	t.Helper()
	var names []string
	for line := range strings.Lines(labtest.Run(t, l.Node("client"), "cat", "/proc/net/snmp")) {
		words := strings.Fields(line)
		if words[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		n, err := strconv.ParseUint(words[slices.Index(names, "RetransSegs")], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatal("no RetransSegs in /proc/net/snmp")
	return 0
}
