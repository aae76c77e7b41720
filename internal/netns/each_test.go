package netns

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/thread"
)

// All calls run in the network namespace of the caller, a few at a time.
func TestEach(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root")
	}
	outside, err := ID()
	if err != nil {
		t.Fatal(err)
	}
	err = thread.RunOnce(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		inside, err := ID()
		if err != nil || inside == outside {
			t.Errorf("the namespace is %q, and the outer one is %q: %v", inside, outside, err)
		}
		var now, most, sum atomic.Int64
		done := make([]string, 40)
		Each(len(done), 4, func(i int) {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			done[i], _ = ID()
			sum.Add(1)
			time.Sleep(5 * time.Millisecond)
		})
		for i, ns := range done {
			if ns != inside {
				t.Errorf("call %d ran in namespace %s, want %s", i, ns, inside)
			}
		}
		if n, m := sum.Load(), most.Load(); n != int64(len(done)) || m < 2 || m > 4 {
			t.Errorf("%d of %d calls ran, %d at a time", n, len(done), m)
		}
		Each(0, 4, func(int) { t.Error("call for n = 0") })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
