package sockops_test

import (
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// After a timeout Reno sends again what had arrived: its acknowledgement comes too soon to be a
// round trip, and none is told as shorter than the path.
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
		least, timeouts := time.Hour, uint32(0)
		for len(done) == 0 {
			for _, c := range sending(tab) {
				least, timeouts = min(least, c.Newest, c.RTT), max(timeouts, c.Timeouts)
			}
			time.Sleep(2 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		t.Logf("%d timeouts, the least round trip was %v", timeouts, least)
		if timeouts == 0 {
			t.Error("nothing was sent again by the timer")
		}
		if least < 19*time.Millisecond {
			t.Errorf("a round trip was %v, on a path of 20 ms", least)
		}
	})
}
