package netns

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/thread"
)

// Each calls do for 0 to n-1, in this order and up to a number of workers concurrently, in the
// network namespace of the calling thread. do must not depend on its thread otherwise. If the
// kernel does not allow other threads to enter the namespace (CAP_SYS_ADMIN is required), the
// calling thread makes all the calls.
func Each(n, workers int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	if workers = min(n, workers); workers > 1 {
		if ns, err := os.Open("/proc/thread-self/ns/net"); err == nil {
			defer ns.Close()
			defer startWorkers(ns, workers-1, work)()
		}
	}
	work()
}

// startWorkers runs work on other threads in a network namespace and returns a function that waits for
// their end.
func startWorkers(ns *os.File, others int, work func()) (wait func()) {
	var all sync.WaitGroup
	mounts := mountNS()
	for range others {
		all.Go(func() {
			_ = thread.RunOnce(func() error {
				err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
				if err == nil && mountNS() == mounts { // maps are pinned in the mount namespace
					work()
				}
				return err
			})
		})
	}
	return all.Wait
}

func mountNS() string {
	name, _ := os.Readlink("/proc/thread-self/ns/mnt")
	return name
}
