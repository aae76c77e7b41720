package host

import (
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawConn is a TCP connection that reads and writes with raw system calls, which is right for a socket that does not block.
// Any other system call wakes the monitor of Go's runtime (entersyscall in runtime/proc.go), which then looks every 20 µs
// whether the call blocks: at 500 Mbit/s that was a third of the wakes of an exit.
type rawConn struct {
	net.Conn
	raw syscall.RawConn
	// quiet is true while the socket tells of what arrives only when much has; only who reads uses it.
	quiet bool
}

// newRawConn returns c itself if it has no socket.
func newRawConn(c net.Conn) net.Conn {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return &rawConn{Conn: c, raw: raw}
		}
	}
	return c
}

// SyscallConn is for the options of the socket.
func (c *rawConn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

func (c *rawConn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = rawRead(fd, b)
		if err == unix.EAGAIN && c.quiet {
			c.quiet = false
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
			n, err = rawRead(fd, b)
		}
		return err != unix.EAGAIN
	})
	if failed != nil {
		return 0, failed
	}
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, c.wrap("read", err)
}

// beQuiet makes what arrives wake nobody, until a Read finds nothing. Who calls it reads at intervals.
func (c *rawConn) beQuiet() {
	if c.quiet {
		return
	}
	_ = c.raw.Control(func(fd uintptr) {
		if size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			c.quiet = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, size/4) == nil
		}
	})
}

func (c *rawConn) Write(b []byte) (n int, err error) { return c.writev(b, nil) }

// writev writes two slices with as few system calls as the socket allows.
func (c *rawConn) writev(a, b []byte) (n int, err error) {
	failed := c.raw.Write(func(fd uintptr) bool {
		for len(a)+len(b) > 0 {
			var m int
			if m, err = rawWritev(fd, a, b); err != nil {
				return err != unix.EAGAIN
			}
			n += m
			ofA := min(m, len(a))
			a, b = a[ofA:], b[m-ofA:]
		}
		return true
	})
	if failed != nil {
		return n, failed
	}
	return n, c.wrap("write", err)
}

// tryWrite writes what the socket takes now, which may be nothing.
func (c *rawConn) tryWrite(b []byte) (n int, err error) {
	failed := c.raw.Control(func(fd uintptr) {
		if n, err = rawWritev(fd, b, nil); err == unix.EAGAIN {
			err = nil
		}
	})
	if failed != nil {
		return 0, failed
	}
	return n, c.wrap("write", err)
}

// wrap returns an error as those of TCPConn are.
func (c *rawConn) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}

// rawTCPInfo is getsockopt with TCP_INFO.
func rawTCPInfo(fd uintptr) *unix.TCPInfo {
	var i unix.TCPInfo
	size := uint32(unsafe.Sizeof(i))
	if _, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&i)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return nil
	}
	return &i
}

func rawRead(fd uintptr, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

func rawWritev(fd uintptr, a, b []byte) (int, error) {
	var iov [2]unix.Iovec
	count := 0
	for _, s := range [][]byte{a, b} {
		if len(s) > 0 {
			iov[count].Base = &s[0]
			iov[count].SetLen(len(s))
			count++
		}
	}
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&iov[0])), uintptr(count))
		runtime.KeepAlive(&iov)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}
