package netns

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/thread"
)

// All of it is done in the namespace of whoever asks, a few at the same time.
func TestEach(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root")
	}
	outside, err := ID()
	if err != nil {
		t.Fatal(err)
	}
	err = thread.Throwaway(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		inside, err := ID()
		if err != nil || inside == outside {
			t.Errorf("the namespace is %q, and outside it is %q: %v", inside, outside, err)
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
				t.Errorf("%d was done in namespace %s, want %s", i, ns, inside)
			}
		}
		if n, m := sum.Load(), most.Load(); n != int64(len(done)) || m < 2 || m > 4 {
			t.Errorf("%d of %d were done, %d at the same time", n, len(done), m)
		}
		Each(0, 4, func(int) { t.Error("there is nothing to do") })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
