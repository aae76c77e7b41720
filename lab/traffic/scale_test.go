package traffic_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// count returns the number of entries of a directory of /proc/self.
func count(t testing.TB, dir string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/" + dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Thousands of flows run in one process, and cost only the CPU time of their packets:
//
//	client ── router ── server      2,000 TCP and 2,000 UDP flows of 120 kbit/s
//
// Each flow's bytes arrive within 2 % and two frames. A flow takes two descriptors, and no goroutine
// or thread of its own. 480 Mbit/s in single frames, 40,000 a second, take 0.4 to 0.5 cores, including
// the kernel (the limit is 1.2).
func TestThousandsOfFlows(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	const each = 2000
	var flows []traffic.Flow
	for i := range each {
		for _, proto := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
			flows = append(flows, flow(fmt.Sprint(proto, i), proto, 120*unit.Kbit))
		}
	}
	labtest.Try(t, func(t *labtest.Check) {
		files, threads, goroutines := count(t, "fd"), count(t, "task"), runtime.NumGoroutine()
		begin := time.Now()
		s, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("connected in %v", time.Since(begin))
		before := cpuTime()
		time.Sleep(2 * time.Second)
		files, threads, goroutines = count(t, "fd")-files, count(t, "task")-threads, runtime.NumGoroutine()-goroutines
		r := s.Wait()
		cores := (cpuTime() - before).Seconds() / r.Seconds
		t.Logf("%.2f cores, %d descriptors, %d threads and %d goroutines more", cores, files, threads, goroutines)
		if files > 4*each+20 || threads > 10 || goroutines > 10 {
			t.Errorf("%d descriptors, %d threads and %d goroutines for %d flows", files, threads, goroutines, 2*each)
		}
		if cores > 1.2 {
			t.Errorf("%.2f cores were used", cores)
		}
		wrong, lost := 0, uint64(0)
		for _, f := range r.Flows {
			off := f.Total.DeliveredL2Bits - f.Total.OfferedL2Bits
			if math.Abs(off) > 0.02*f.Total.OfferedL2Bits+float64(16*f.FrameBytes) || f.Error != "" {
				if wrong++; wrong < 5 {
					t.Logf("flow %s: delivered %.0f of %.0f bits, error %q", f.Name, f.Total.DeliveredL2Bits, f.Total.OfferedL2Bits, f.Error)
				}
			}
			lost += f.Total.LostDatagrams
		}
		if wrong > 0 {
			t.Errorf("%d of %d flows are off; %d datagrams were lost", wrong, len(flows), lost)
		}
	})
	if left := count(t, "fd"); left > 200 {
		t.Errorf("%d descriptors are open after the run", left)
	}
}

// The same for connections of thousands of users:
//
//	client ──10 ms── router ── server      3,000 users, about 3,000 requests a second
func TestThousandsOfUsers(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{RTT: 10 * time.Millisecond})
	labtest.Try(t, func(t *labtest.Check) {
		before, threads := cpuTime(), count(t, "task")
		r := run(t, l, 4*time.Second, requests(traffic.Requests{
			Users: 3000, Request: bytesOf(200), Response: bytesOf(2000),
			Think: traffic.Distribution[time.Duration]{Kind: traffic.Exponential, Mean: time.Second},
		}))
		got := r.Flow("r").Requests
		t.Logf("%.2f cores including connecting, %+v", (cpuTime()-before).Seconds()/r.Seconds, got)
		balanced(t, got)
		if want := r.Seconds * 3000 / (1 + got.Latency.MeanUs/1e6); math.Abs(float64(got.Done)/want-1) > 0.1 {
			t.Errorf("%d requests were done, want %.0f", got.Done, want)
		}
		if n := count(t, "task") - threads; n > 10 {
			t.Errorf("%d threads were added", n)
		}
	})
}
