package sockops_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// After a timeout Reno retransmits packets that had arrived. Their acknowledgement comes
// too early for a round trip, and no reading is shorter than the path.
func TestNewest(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	labtest.Try(t, func(t *labtest.Check) {
		tab := table(t, cgroup, 16)
		topology := lab.Rig(lab.RigOptions{Name: lab.UniqueName("test"), Bottleneck: 50 * unit.Mbit, RTT: 20 * time.Millisecond, Sysctl: map[string]string{"net.ipv4.tcp_sack": "0"}})
		path := &topology.Links[0]
		path.Name = "path"
		path.Back.Queue.Bytes = 40 * 1514
		topology.Duration = 8 * time.Second
		clear, lossy := path.Back, path.Back
		lossy.Loss.Probability = 0.3
		for i := range 5 {
			at := time.Duration(1+i) * time.Second
			topology.Timeline = append(topology.Timeline, lab.Event{At: at, Link: "path", Back: &lossy}, lab.Event{At: at + 100*time.Millisecond, Link: "path", Back: &clear})
		}
		topology.Flows = []traffic.Flow{{
			Name: "f", From: "server", To: "client", Protocol: traffic.TCP, DstPort: 5001, Congestion: "reno", Schedule: traffic.Constant(traffic.Unlimited),
		}}
		l := labtest.Up(t, topology)
		done := make(chan error, 1)
		go func() {
			_, err := l.Run(t.Context(), lab.RunOptions{})
			done <- err
		}()
		time.Sleep(500 * time.Millisecond)
		shortest, timeouts := time.Hour, uint32(0)
		for len(done) == 0 {
			for _, c := range sending(tab) {
				shortest, timeouts = min(shortest, c.Newest, c.RTT), max(timeouts, c.Timeouts)
			}
			time.Sleep(2 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		t.Logf("%d timeouts, the shortest round trip was %v", timeouts, shortest)
		if timeouts == 0 {
			t.Error("no retransmission timeout")
		}
		if shortest < 19*time.Millisecond {
			t.Errorf("a round trip was %v, on a path of 20 ms", shortest)
		}
	})
}

// A burst that was lost is retransmitted for many round trips, at the pace of the
// connection at that time. These retransmissions are not new losses, and the marks that
// the receiver repeats are not new marks.
func TestLongRecovery(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	labtest.Try(t, func(t *labtest.Check) {
		tab := table(t, cgroup, 16)
		topology := lab.Rig(lab.RigOptions{
			Name: lab.UniqueName("test"), Bottleneck: 10 * unit.Mbit, RTT: 50 * time.Millisecond, // an emulated processor can fill it, too
			Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"},
		})
		back := &topology.Links[0].Back
		back.Queue.Bytes = 20 * 1514
		back.RED = &link.RED{Profile: link.Profile{Min: link.Amount{Bytes: 2 * 1514}, Max: link.Amount{Bytes: 40 * 1514}, Probability: 1}, ECN: true}
		defer start(t, labtest.Up(t, topology), 1, 20*time.Second, "bbr").Stop()
		one := func() *sockops.Connection {
			time.Sleep(time.Millisecond)
			if all := sending(tab); len(all) == 1 {
				return all[0]
			}
			return &sockops.Connection{}
		}
		c := one()
		for end := time.Now().Add(5 * time.Second); c.Resent == 0; c = one() {
			if time.Now().After(end) {
				t.Fatal("no loss")
			}
		}
		tab.Cap(c, 0.2e6/8, 0, sockops.Now()+5*time.Second)
		time.Sleep(time.Second)
		before := one()
		time.Sleep(time.Second)
		after := one()
		again, events, marks := after.Retransmits-before.Retransmits, after.Resent-before.Resent, after.Marked-before.Marked
		t.Logf("%d packets were retransmitted, and in the next second %d, as %d new events; marks were %d events, and %d new ones", before.Retransmits, again, events, before.Marked, marks)
		if again < 8 {
			t.Errorf("%d packets were retransmitted in the second second, want the 16 of the pace", again)
		}
		if events > 0 {
			t.Errorf("retransmissions count as %d new losses", events)
		}
		if marks > 0 {
			t.Errorf("repeated marks count as %d new marks", marks)
		}
		if before.Resent == 0 || before.Marked == 0 {
			t.Errorf("%d loss events at first, and %d marks", before.Resent, before.Marked)
		}
	})
}
