package wire

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// realtime makes the thread SCHED_FIFO, or at least its timers exact, and returns
// what undoes it. New threads do not inherit it.
func realtime() (restore func()) {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	before, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
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

var procs sync.Mutex

// addProcs gives the Go scheduler n more Ps, so that a thread of ours does not wait
// for the program's other goroutines.
func addProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// read and write do not tell the Go scheduler: they never block, and to
// hand the thread's P back and forth would cost more than the call.

func read(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), e
}

// write writes head and body as one frame; head may be empty.
func write(fd int, head, body []byte) unix.Errno {
	if len(head) == 0 {
		_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&body[0])), uintptr(len(body)))
		return e
	}
	v := [2]unix.Iovec{{Base: &head[0], Len: uint64(len(head))}, {Base: &body[0], Len: uint64(len(body))}}
	_, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&v)), 2)
	return e
}

var epoch, epochNs = time.Now(), monotonic()

func monotonic() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// nanotime is CLOCK_MONOTONIC, without a system call; it is also the clock of
// bpf_ktime_get_ns, and within some us of the kernel's.
func nanotime() int64 { return epochNs + int64(time.Since(epoch)) }

// cpuTime is what the calling thread has used.
func cpuTime() (user, system time.Duration) {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
