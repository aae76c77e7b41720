package sockops_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate/collective/sockops"
	"headgate/lab/labtest"
)

// A connection whose clamp is lifted goes on from the window that it had: it is not in slow
// start, which TCP_BPF_SNDCWND_CLAMP alone leaves it in.
func TestThreshold(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	for _, congestion := range []string{"reno", "cubic"} {
		labtest.Try(t, func(t *labtest.Check) {
			tab := table(t, cgroup, 16)
			s := start(t, rig(t), 1, 10*time.Second, congestion)
			defer func() { s.Stop(); s.Wait() }()
			time.Sleep(500 * time.Millisecond)
			tab.Cap(sending(tab)[0], 0, 6, sockops.Now()+time.Second)
			time.Sleep(500 * time.Millisecond)
			tab.Lift()
			time.Sleep(200 * time.Millisecond) // ten round trips: 6 packets doubled ten times
			if c := sending(tab)[0]; c.Clamped != 0 || c.Threshold > 12 || c.Window > 40 {
				t.Errorf("%s: 200 ms after it was let go its window is %d, its threshold %d, its clamp %d", congestion, c.Window, c.Threshold, c.Clamped)
			}
		})
	}
}

// A cgroup that is removed takes nothing with it: a connection that was made in it is let go
// as any other. One of the same name that is made anew is followed.
func TestFollow(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	labtest.Try(t, func(t *labtest.Check) {
		tab := table(t, cgroup, 64)
		l := rig(t)
		s := start(t, l, 1, 30*time.Second, "cubic")
		defer func() { s.Stop(); s.Wait() }()
		time.Sleep(500 * time.Millisecond)
		tab.Cap(sending(tab)[0], 1e6/8, 0, sockops.Now()+3*time.Second)
		labtest.Enter(t, filepath.Dir(cgroup))
		if err := os.Remove(cgroup); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if c := sending(tab)[0]; c.Paced != 1e6/8 {
			t.Errorf("in force is %d", c.Paced)
		}
		time.Sleep(3500 * time.Millisecond)
		if c := sending(tab)[0]; c.Paced != 0 {
			t.Errorf("a second after the lease %d is in force", c.Paced)
		}
		if err := os.Mkdir(cgroup, 0o755); err != nil {
			t.Fatal(err)
		}
		labtest.Enter(t, cgroup)
		open := func(want int, when string) {
			again := start(t, l, 1, 10*time.Second, "cubic")
			defer func() { again.Stop(); again.Wait() }()
			time.Sleep(300 * time.Millisecond)
			if n := len(sending(tab)); n != want {
				t.Errorf("%s %d connections are watched, want %d", when, n, want)
			}
		}
		open(1, "before it is followed")
		if err := tab.Follow(7, below(cgroup)); err != nil {
			t.Fatal(err)
		}
		open(2, "after it is followed")
	})
}
