package realtime

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Hold keeps Go's scheduler away from the calling goroutine, which has its thread to
// itself (runtime.LockOSThread), until Release. Meanwhile it must not wait for anything
// but by Sleep and Poll, nor enter the kernel other than by unix.RawSyscall; and as the
// garbage collector waits for it, and then everybody else, it says Release often.
//
// Without, a real-time thread waits for ordinary ones. Go's monitor stops for a moment
// what may just be leaving the kernel (setBlockOnExitSyscall in runtime/proc.go). It
// runs at an ordinary priority: the thread that comes out preempts it, and spins until
// the monitor goes on, which is when the kernel moves it elsewhere. Measured: beside a
// sender that had the other of two processors, an emulated link stood still for 35 to
// 280 ms in 6 of 35 trains of 318 ms; held, in none of 37.
func Hold() {
	procPin()
	mask(unix.SIG_BLOCK)
}

// Release ends what Hold began, and lets the scheduler do what it wanted to.
func Release() {
	procUnpin()
	mask(unix.SIG_UNBLOCK)
	runtime.Gosched()
}

// urgent is SIGURG, by which the scheduler asks for a thread: it sends no second one
// before the first was taken. Without, a program that is busy elsewhere sends thousands
// in a second to a thread that is held.
var urgent = uint64(1) << (unix.SIGURG - 1)

func mask(how int) {
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how), uintptr(unsafe.Pointer(&urgent)), 0, unsafe.Sizeof(urgent), 0, 0)
}

// The scheduler gives its P to another goroutine neither by force nor in a raw system
// call while it is pinned.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Sleep lasts until a time of Now.
func Sleep(until int64) {
	t := unix.NsecToTimespec(until)
	for Now() < until {
		unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
	}
}

// Poll waits for files or some ns; if patient is said, no longer than
// until the scheduler asks for the thread.
func Poll(fds []unix.PollFd, wait int64, patient bool) {
	t := unix.NsecToTimespec(wait)
	var all *uint64
	if patient {
		all = new(uint64) // no signal is blocked
	}
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&t)), uintptr(unsafe.Pointer(all)), unsafe.Sizeof(urgent), 0)
}
