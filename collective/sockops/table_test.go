package sockops_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// table returns a table that watches the connections of a cgroup.
func table(t testing.TB, cgroup string, size int) *sockops.Table {
	t.Helper()
	tab := open(t, size)
	t.Cleanup(func() {
		if err := tab.Remove(); err != nil {
			t.Error(err)
		}
		tab.Close()
	})
	if err := tab.Attach(sockops.Set{Number: 7, Cgroup: below(cgroup)}); err != nil {
		t.Fatal(err)
	}
	return tab
}

// below returns the path of a test's cgroup below the mount.
func below(path string) string { return "/" + filepath.Base(path) }

func tableName() string { return fmt.Sprintf("test-%d", os.Getpid()) }

func open(t testing.TB, size int) *sockops.Table {
	t.Helper()
	tab, err := sockops.Open(tableName(), size)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// sending returns the connections that were opened, not accepted.
func sending(tab *sockops.Table) (out []*sockops.Connection) {
	for c := range tab.Connections() {
		if !c.Passive {
			out = append(out, c)
		}
	}
	return out
}

// rig returns the lab of these tests: 50 Mbit/s towards the client, 20 ms.
//
//	server ── router ──50 Mbit/s, 20 ms── client
func rig(t testing.TB) *lab.Lab {
	return labtest.Rig(t, lab.RigOptions{Bottleneck: 50 * unit.Mbit, RTT: 20 * time.Millisecond})
}

func start(t testing.TB, l *lab.Lab, flows int, took time.Duration, congestion string) *traffic.Session {
	t.Helper()
	var all []traffic.Flow
	for i := range flows {
		all = append(all, traffic.Flow{
			Name: strconv.Itoa(i), From: "server", To: "client", Protocol: traffic.TCP, DstPort: uint16(5001 + i),
			Congestion: congestion, Schedule: traffic.Constant(traffic.Unlimited),
		})
	}
	s, err := traffic.Start(t.Context(), l.Host, all, traffic.Options{Duration: took})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(); s.Wait() })
	return s
}

// rate returns the rate of the only sending connection over the time took, in Mbit/s of
// payload.
func rate(t testing.TB, tab *sockops.Table, took time.Duration) float64 {
	t.Helper()
	of := func() (float64, time.Duration) {
		all := sending(tab)
		if len(all) != 1 {
			t.Fatalf("%d connections send, want 1", len(all))
		}
		return float64(all[0].Acked), all[0].Seen
	}
	before, from := of()
	time.Sleep(took)
	after, to := of()
	return (after - before) * 8 / (to - from).Seconds() / 1e6
}

// Readings are correct: rate, round-trip times, addresses, and the end of the connection.
func TestReadings(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	labtest.Try(t, func(t *labtest.Check) { // an emulated processor that is disturbed does not fill the path
		tab := table(t, cgroup, 16)
		s := start(t, rig(t), 1, 5*time.Second, "cubic")
		time.Sleep(time.Second)
		first := sending(tab)
		if len(first) != 1 {
			t.Fatalf("%d connections, want 1", len(first))
		}
		got := rate(t, tab, 3*time.Second)
		c := sending(tab)[0]
		rtt := (c.RTTSum - first[0].RTTSum) / time.Duration(c.Rounds-first[0].Rounds)
		t.Logf("%.1f Mbit/s, round trip %v, %d of them, %+v", got, rtt, c.Rounds-first[0].Rounds, c)
		// Acknowledgements come in bursts after a loss.
		if got < 44 || got > 50 {
			t.Errorf("%.1f Mbit/s, want 47.8", got)
		}
		if rtt < 20*time.Millisecond || rtt > 90*time.Millisecond || c.RTT < 20*time.Millisecond {
			t.Errorf("round trip of %v, want 20 ms and some queue", rtt)
		}
		if n := time.Duration(c.Rounds - first[0].Rounds); n < 3*time.Second/rtt/2 || n > 6*time.Second/rtt {
			t.Errorf("%d round trips of %v in 3 s", n, rtt)
		}
		if c.Set != 7 || c.Remote.Port() != 5001 || c.Local.Addr().String() != "10.0.1.2" || c.Remote.Addr().String() != "10.0.0.1" || c.Segment != 1448 || c.Backlog == 0 {
			t.Errorf("%+v", c)
		}
		s.Wait()
		for range 50 {
			if len(sending(tab)) == 0 {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("the connection has ended and is still there: %+v", sending(tab)[0])
	})
}

// Every congestion control keeps a pace within 5 %, and a window. Both end with their
// lease, and a table that is opened again has the connection.
func TestCap(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	for _, congestion := range []string{"reno", "cubic", "bbr"} {
		labtest.Try(t, func(t *labtest.Check) {
			tab := table(t, cgroup, 16)
			s := start(t, rig(t), 1, 20*time.Second, congestion)
			defer s.Stop()
			time.Sleep(time.Second)
			hold := func(pace, window uint32) float64 {
				until := sockops.Now() + 1500*time.Millisecond
				tab.Cap(sending(tab)[0], pace, window, until)
				time.Sleep(300 * time.Millisecond)
				return rate(t, tab, time.Second)
			}
			if got := hold(10e6/8, 0); math.Abs(got/10-1) > 0.08 {
				t.Errorf("%s: payload at a pace of 10 Mbit/s with headers is %.2f Mbit/s", congestion, got)
			}
			tab.Lift()
			time.Sleep(500 * time.Millisecond)
			// 5 packets of 1,448 bytes in 20 ms.
			if got, want := hold(0, 5), 5*1448*8/0.0205/1e6; got > 1.05*want || got < 0.8*want {
				t.Errorf("%s: rate with a window of 5 packets is %.2f Mbit/s, want %.2f", congestion, got, want)
			}
			// The lease is not renewed, as after kill -9; another process opens the
			// table.
			tab.Cap(sending(tab)[0], 1e6/8, 0, sockops.Now()+500*time.Millisecond)
			time.Sleep(400 * time.Millisecond)
			if c := sending(tab)[0]; c.Paced != 1e6/8 || c.Clamped != 0 {
				t.Errorf("%s: caps in force are %d and %d", congestion, c.Paced, c.Clamped)
			}
			time.Sleep(2 * time.Second)
			if _, err := sockops.Open(tableName(), 16); !errors.Is(err, sockops.ErrInUse) {
				t.Errorf("a second process can open the table: %v", err)
			}
			tab.Close()
			again := open(t, 16)
			defer again.Close()
			if got := rate(t, again, time.Second); got < 40 {
				t.Errorf("%s: rate a second after the lease is %.1f Mbit/s", congestion, got)
			}
		})
	}
}

// Connections beyond the table's size are counted and not read; slots are reusable.
func TestFull(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 4)
	l := rig(t)
	s := start(t, l, 5, 10*time.Second, "cubic") // each flow has two ends
	if n, err := tab.RefusedWhenFull(); n != 6 || err != nil {
		t.Errorf("%d were refused, want 6 (%v)", n, err)
	}
	s.Stop()
	s.Wait()
	time.Sleep(300 * time.Millisecond)
	start(t, l, 2, 10*time.Second, "cubic")
	if n, err := tab.RefusedWhenFull(); n != 6 || err != nil {
		t.Errorf("%d were refused after slots were freed, want 6 (%v)", n, err)
	}
}

// A connection whose receiver takes two packets at a time is reported as limited by the
// receiver, and one that the network limits is not.
func TestReceiverFull(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	for clamp, want := range map[unit.Bytes]bool{3000: true, 0: false} {
		labtest.Try(t, func(t *labtest.Check) {
			tab := table(t, cgroup, 16)
			s, err := traffic.Start(t.Context(), rig(t).Host, []traffic.Flow{{
				Name: "a", From: "server", To: "client", Protocol: traffic.TCP, DstPort: 5001, Congestion: "cubic",
				WindowClamp: clamp, Schedule: traffic.Constant(traffic.Unlimited),
			}}, traffic.Options{Duration: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { s.Stop(); s.Wait() }()
			time.Sleep(time.Second)
			full, all := 0, 0
			for range 100 {
				time.Sleep(10 * time.Millisecond)
				for _, c := range sending(tab) {
					if all++; c.ReceiverFull {
						full++
					}
				}
			}
			if got := full > all*9/10; got != want || !want && full > all/10 {
				t.Errorf("with a window of %v the receiver is full in %d of %d readings", clamp, full, all)
			}
		})
	}
}
