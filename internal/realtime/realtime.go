// Package realtime is for threads that must be on time: their scheduling, and a clock
// that costs no system call.
package realtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread makes the calling thread SCHED_FIFO with a priority, or at least its timers
// exact where that is not allowed, and returns what undoes it. New threads do not
// inherit it.
func Thread(priority uint32) (restore func()) {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	before, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		err = unix.SchedSetAttr(0, &fifo, 0)
	}
	return func() {
		unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
		if err == nil {
			before.Flags = 0
			unix.SchedSetAttr(0, before, 0)
		}
	}
}

var epoch, epochNs = time.Now(), monotonic()

func monotonic() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// Now is CLOCK_MONOTONIC in ns, without a system call; it is also the clock of
// bpf_ktime_get_ns, and within some us of the kernel's.
func Now() int64 { return epochNs + int64(time.Since(epoch)) }
