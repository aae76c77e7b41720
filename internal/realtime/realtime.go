// Package realtime supports threads with exact timing: real-time scheduling, and a clock without
// system calls.
package realtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread gives the calling thread a SCHED_FIFO priority, or at least exact timers if that is not
// permitted. restore undoes that. New threads do not inherit the priority.
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

// Now returns CLOCK_MONOTONIC in ns, without a system call. bpf_ktime_get_ns uses the same clock;
// Now is within some microseconds of it.
func Now() int64 { return epochNs + int64(time.Since(epoch)) }
