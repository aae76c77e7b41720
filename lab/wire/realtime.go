package wire

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/realtime"
)

// priority among SCHED_FIFO threads.
const priority = 10

// running is what threads of ours change for the whole program.
var running struct {
	sync.Mutex
	threads, percent int
	limit            int64
	ps               int // before
}

// begin gives the Go scheduler n more Ps, so that n threads of ours do not wait for the
// program's other goroutines, and keeps the garbage collector off as long as there is
// memory: it stops all threads together, and those that let go wait for those that are
// held (realtime.Hold). Links were 10 to 100 ms late, once for each collection. To set
// the number of Ps does the same, so it grows in large steps, and is set back at the end.
func begin(n int) {
	r := &running
	r.Lock()
	defer r.Unlock()
	if r.threads == 0 {
		reserve()
		r.ps = runtime.GOMAXPROCS(0)
		r.limit = debug.SetMemoryLimit(memoryLimit())
		r.percent = debug.SetGCPercent(-1)
	}
	r.threads += n
	if now := runtime.GOMAXPROCS(0); now < r.ps+r.threads {
		runtime.GOMAXPROCS(max(r.ps+r.threads, 4*now))
	}
}

// end undoes what begin did.
func end(n int) {
	r := &running
	r.Lock()
	defer r.Unlock()
	if r.threads -= n; r.threads == 0 {
		runtime.GOMAXPROCS(r.ps)
		debug.SetGCPercent(r.percent)
		debug.SetMemoryLimit(r.limit)
	}
}

// reserve has the heap's address space mapped before it is used, once: it grows as nothing
// is collected, and while one thread maps more, all that touch new memory wait for it, and
// that one for whoever holds the lock of the neighbouring area (vma_prepare in mm/vma.c).
// Measured on Linux 6.18, in 7 of 10 runs of 114 s with 12 links: for 1 to 53 s no sender got
// on, although a processor was free.
var reserve = sync.OnceFunc(func() {
	// Spans of one page each, so that what the heap notes of them is there as well.
	var all [][]byte
	for range min(memoryLimit()/2, reserved) / page {
		all = append(all, make([]byte, page))
	}
	runtime.KeepAlive(all)
	debug.FreeOSMemory()
})

// reserved is more than a run of ten minutes was seen to allocate (1 MB/s, with 12 links).
const reserved = 768 << 20

const page = 8 << 10 // of Go's heap

// memoryLimit is from where on garbage is collected all the same: a quarter of the
// machine's memory, but no more than 2 GiB.
func memoryLimit() int64 {
	const most = 2 << 30
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return most / 8
	}
	return min(int64(i.Totalram)*int64(i.Unit)/4, most)
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
