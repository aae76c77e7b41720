package wire

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/internal/realtime"
)

// priority among SCHED_FIFO threads.
const priority = 10

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

func nanotime() int64 { return realtime.Now() }

// cpuTime is what the calling thread has used.
func cpuTime() (user, system time.Duration) {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
