package realtime

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DisablePreemption prevents Go's scheduler from preempting the calling goroutine until Release. The goroutine
// must be locked to its thread (runtime.LockOSThread). Until Release it must block only in Sleep
// and Poll, and must make system calls only with unix.RawSyscall. It must call Release often,
// because the garbage collector, and then all other goroutines, wait for it.
//
// Without Hold, a real-time thread waits for ordinary threads. Go's monitor briefly stops threads
// that may be returning from a system call (setBlockOnExitSyscall in runtime/proc.go). The monitor
// runs at an ordinary priority: the returning thread preempts it, and spins until the kernel moves
// the monitor to another processor. Measured with a sender that occupied the other of two
// processors: an emulated link stood still for 35 to 280 ms in 6 of 35 trains of 318 ms; with Hold,
// in none of 37.
func DisablePreemption() {
	procPin()
	mask(unix.SIG_BLOCK)
}

// EnablePreemption ends Hold and lets the scheduler run pending work.
func EnablePreemption() {
	procUnpin()
	mask(unix.SIG_UNBLOCK)
	runtime.Gosched()
}

// sigurgMask is SIGURG, the signal by which the scheduler preempts a thread. While it is blocked, the
// scheduler sends at most one. Otherwise a busy program sends thousands per second to a held
// thread.
var sigurgMask = uint64(1) << (unix.SIGURG - 1)

func mask(how int) {
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how), uintptr(unsafe.Pointer(&sigurgMask)), 0, unsafe.Sizeof(sigurgMask), 0, 0)
}

// While a goroutine is pinned, the scheduler does not give its P to another goroutine, neither by
// preemption nor during a raw system call.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Sleep returns at the time until, on the clock of Now.
func Sleep(until int64) {
	t := unix.NsecToTimespec(until)
	for Now() < until {
		unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
	}
}

// Poll waits up to wait nanoseconds for file descriptors. If patient is true, Poll also returns
// when the scheduler wants to preempt the thread.
func Poll(fds []unix.PollFd, wait int64, patient bool) {
	t := unix.NsecToTimespec(wait)
	var all *uint64
	if patient {
		all = new(uint64) // no signal is blocked
	}
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&t)), uintptr(unsafe.Pointer(all)), unsafe.Sizeof(sigurgMask), 0)
}
