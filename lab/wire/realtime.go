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

// priority of the threads under SCHED_FIFO.
const priority = 10

// running counts the threads that have changed the settings of the whole program.
var running struct {
	sync.Mutex
	threads, percent int
	limit            int64
	ps               int // before the change
}

// begin gives the Go scheduler n more Ps, so that n threads do not wait for the program's other
// goroutines, and turns the garbage collector off as long as there is memory: it stops all threads
// together, and those that yield wait for those that do not (realtime.Hold). Links were 10 to 100 ms
// late, once for each collection. Setting the number of Ps has the same effect, so it grows in large
// steps, and is restored at the end.
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

// end undoes begin.
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

// reserve maps the heap's address space before it is used, once. The heap grows as nothing is
// collected, and while one thread maps more memory, all threads that touch new memory wait for it;
// that thread waits for the holder of the lock of the neighbouring area (vma_prepare in mm/vma.c).
// Measured on Linux 6.18, in 7 of 10 runs of 114 s with 12 links: no sender made progress for 1 to 53
// s, although a processor was free.
var reserve = sync.OnceFunc(func() {
	// Spans of one page each, so that the heap's metadata of them is mapped as well.
	var all [][]byte
	for range min(memoryLimit()/2, reserved) / page {
		all = append(all, make([]byte, page))
	}
	runtime.KeepAlive(all)
	debug.FreeOSMemory()
})

// reserved is more than a run of ten minutes allocated (1 MB/s, with 12 links).
const reserved = 768 << 20

const page = 8 << 10 // of Go's heap

// memoryLimit returns the heap size from which garbage is still collected: a quarter of the machine's
// memory, but not above 2 GiB.
func memoryLimit() int64 {
	const maxHeap = 2 << 30
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return maxHeap / 8
	}
	return min(int64(i.Totalram)*int64(i.Unit)/4, maxHeap)
}

// read and write do not enter the Go scheduler: they never block, and passing the thread's P to and
// fro would cost more than the call.

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

// cpuTime returns the CPU time of the calling thread.
func cpuTime() (user, system time.Duration) {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
