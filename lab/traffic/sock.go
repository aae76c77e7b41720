package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newSocket makes a non-blocking socket in the calling thread's namespace, with
// the flow's marking, bound to addr.
func newSocket(f *Flow, kind int, addr netip.AddrPort) (int, error) {
	family, tos := unix.AF_INET, [2]int{unix.IPPROTO_IP, unix.IP_TOS}
	if f.IPv6 {
		family, tos = unix.AF_INET6, [2]int{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make socket: %w", err)
	}
	set := []struct {
		on                bool
		level, opt, value int
	}{
		{true, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{f.DSCP != 0, tos[0], tos[1], int(f.DSCP) << 2},
		{f.Mark != 0, unix.SOL_SOCKET, unix.SO_MARK, int(f.Mark)},
		{kind == unix.SOCK_STREAM, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
	}
	for _, s := range set {
		if !s.on {
			continue
		}
		if err := unix.SetsockoptInt(fd, s.level, s.opt, s.value); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("set socket option %d: %w", s.opt, err)
		}
	}
	if err := unix.Bind(fd, sockaddr(addr)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("bind to %v: %w", addr, err)
	}
	return fd, nil
}

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

// localAddr is the address that the socket got.
func localAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	return addrPort(sa), err
}

// waitReady polls one socket for events.
func waitReady(fd int, events int16, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("no answer in time")
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		return err
	}
}

// mono is CLOCK_MONOTONIC in ns, read without a system call: Go's clock is the
// same one with another origin.
func mono() int64 { return int64(time.Since(monoEpoch)) + monoOrigin }

var monoEpoch, monoOrigin = func() (time.Time, int64) {
	var ts unix.Timespec
	t := time.Now()
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return t, ts.Nano()
}()

// MonotonicNow is the clock of Result.StartMonotonicNs.
func MonotonicNow() int64 { return mono() }

// sleepUntil sleeps to a CLOCK_MONOTONIC time. Go's own timers round up to 1 ms
// (they wait in epoll), which is the whole tick here.
func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
}

// ioctlInt reads an int by ioctl without telling the scheduler: it never blocks.
func ioctlInt(fd int, req uintptr) (int, error) {
	var v int32
	if _, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(unsafe.Pointer(&v))); e != 0 {
		return 0, e
	}
	return int(v), nil
}
