package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/unit"
)

// Limits of buffers. The kernel raises a smaller one to its own minimum, a few packets, and a larger
// one overflows when it is doubled.
const (
	minBuffer = 2 << 10
	maxBuffer = 1 << 30
)

func (f *Flow) validateSockets() error {
	for _, b := range []struct {
		key  string
		size unit.Bytes
	}{{"send_buffer", f.SendBuffer}, {"receive_buffer", f.ReceiveBuffer}, {"window_clamp", f.WindowClamp}} {
		if b.size != 0 && (b.size < minBuffer || b.size > maxBuffer) {
			return mistake(b.key, "%v is not between %v and %v", b.size, unit.Bytes(minBuffer), unit.Bytes(maxBuffer))
		}
	}
	return nil
}

// socketSettings are the settings that an accepted socket inherits from its listener, so that they
// must be the same for all flows to its port.
type socketSettings struct {
	mptcp                bool
	send, receive, clamp unit.Bytes
}

func (f *Flow) settings() socketSettings {
	return socketSettings{mptcp: f.MPTCP, send: f.SendBuffer, receive: f.ReceiveBuffer, clamp: f.WindowClamp}
}

// newSocket creates a non-blocking socket in the calling thread's namespace, with the flow's settings,
// bound to addr.
func newSocket(f *Flow, kind int, addr netip.AddrPort) (int, error) {
	family, protocol := unix.AF_INET, 0
	if f.IPv6 {
		family = unix.AF_INET6
	}
	if f.MPTCP {
		protocol = unix.IPPROTO_MPTCP
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) {
		return -1, fmt.Errorf("cannot create an mptcp socket: set net.mptcp.enabled to 1 in the node, or leave mptcp out (%w)", err)
	}
	if err != nil {
		return -1, fmt.Errorf("cannot create a socket: %w", err)
	}
	stream := kind == unix.SOCK_STREAM
	if stream && addr.Port() == 0 {
		// The port is chosen when the other end is known, so that ports last for more than 28,000
		// connections. On kernels without this option they do not.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	}
	err = setOptions(fd, []option{
		{true, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{f.tos() != 0, f.tosLevel(), f.tosOption(), f.tos()},
		{f.Mark != 0, unix.SOL_SOCKET, unix.SO_MARK, int(f.Mark)},
		{stream, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{f.SendBuffer != 0, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, int(f.SendBuffer)},
		{f.ReceiveBuffer != 0, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, int(f.ReceiveBuffer)},
		{f.WindowClamp != 0, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, int(f.WindowClamp)},
	})
	if err == nil {
		if err = unix.Bind(fd, sockaddr(addr)); err != nil {
			err = fmt.Errorf("cannot bind to %v: %w", addr, err)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// keepClamp sets the window clamp again. The kernel replaces it whenever it has measured the ratio of
// payload to buffer space (tcp_measure_rcv_mss, since Linux 6.6): a clamp of 64 KiB was 128 KiB soon
// after the start.
func (f *Flow) keepClamp(fd int) {
	if f.WindowClamp != 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, int(f.WindowClamp))
	}
}

// tos returns the byte of DSCP and ECN. TCP sets its ECN bits itself.
func (f *Flow) tos() int {
	const ect0 = 2
	tos := int(f.DSCP) << 2
	if f.ECN && f.Protocol == UDP {
		tos |= ect0
	}
	return tos
}

func (f *Flow) tosLevel() int {
	if f.IPv6 {
		return unix.IPPROTO_IPV6
	}
	return unix.IPPROTO_IP
}

func (f *Flow) tosOption() int {
	if f.IPv6 {
		return unix.IPV6_TCLASS
	}
	return unix.IP_TOS
}

// option is a socket option that is set if on is true.
type option struct {
	on                bool
	level, opt, value int
}

func setOptions(fd int, options []option) error {
	for _, o := range options {
		if !o.on {
			continue
		}
		if err := unix.SetsockoptInt(fd, o.level, o.opt, o.value); err != nil {
			return fmt.Errorf("cannot set socket option %d of level %d to %d: %w", o.opt, o.level, o.value, err)
		}
	}
	return nil
}

// markAccepted sets the flow's own DSCP and mark on an accepted socket, which inherits those of a
// listener that flows may share.
func (f *Flow) markAccepted(fd int) error {
	return setOptions(fd, []option{
		{true, f.tosLevel(), f.tosOption(), f.tos()},
		{true, unix.SOL_SOCKET, unix.SO_MARK, int(f.Mark)},
		{true, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
	})
}

func (f *Flow) setCongestion(fd int) error {
	return setCongestion(fd, cmp.Or(f.Congestion, DefaultCongestion))
}

func setCongestion(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if errors.Is(err, unix.ENOENT) {
		known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		return fmt.Errorf("this kernel has no congestion control %q: choose one of %s", name, strings.TrimSpace(string(known)))
	}
	return err
}

// CheckCongestion returns an error for a congestion control that this kernel does not have; "" is the
// default, and valid.
func CheckCongestion(name string) error {
	if name == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // the flow will report it
	}
	defer unix.Close(fd)
	if err := setCongestion(fd, name); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}
