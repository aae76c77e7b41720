package traffic

import (
	"errors"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	clock "headgate.dev/headgate/internal/realtime"
)

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// localAddr returns the address of the socket.
func localAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	return addrPort(sa), err
}

// waitReady polls one socket for events.
func waitReady(fd int, events int16, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("timed out")
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		return err
	}
}

func mono() int64 { return clock.Now() }

// MonotonicNow returns the time of the clock of Result.StartMonotonicNs.
func MonotonicNow() int64 { return mono() }

// sleepUntil sleeps until a CLOCK_MONOTONIC time. Go's own timers round up to 1 ms (they wait in
// epoll), which is a whole tick here.
func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
}

// quickSleep removes the timer slack of this goroutine's thread: the kernel may add 50 us to the
// sleeps of an ordinary thread, which would be part of the gaps of Poisson packets. The thread ends
// with the goroutine.
func quickSleep() {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// ioctlInt reads an int by ioctl without entering the Go scheduler: it never blocks.
func ioctlInt(fd int, req uintptr) (int, error) {
	var v int32
	if _, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(unsafe.Pointer(&v))); e != 0 {
		return 0, e
	}
	return int(v), nil
}
