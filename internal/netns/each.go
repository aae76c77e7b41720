package netns

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"headgate/internal/thread"
)

// Each does something with each of n things, in their order and up to a number of them at the same
// time, in the network namespace of the calling thread. What is done must not care for its thread
// otherwise. Where the kernel lets no other thread enter the namespace (it needs CAP_SYS_ADMIN) the
// calling one does all of it.
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
			defer help(ns, workers-1, work)()
		}
	}
	work()
}

// help has others do the work too, in a namespace; what it gives waits until they have ended.
func help(ns *os.File, others int, work func()) (wait func()) {
	var all sync.WaitGroup
	mounts := mountNS()
	for range others {
		all.Go(func() {
			_ = thread.Throwaway(func() error {
				err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
				if err == nil && mountNS() == mounts { // where maps are pinned
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
