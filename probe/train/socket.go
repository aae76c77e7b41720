package train

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// buffers is the buffer size that a socket requests in each direction, in bytes. It holds
// a whole train: no packet is lost while the program does not read, and none waits in the
// program because a local shaper delays others.
const buffers = 32 << 20

// Socket is a UDP socket for trains to and from one or more peers.
type Socket struct {
	fd         int
	local      netip.AddrPort
	remote     netip.AddrPort          // of a connected socket
	onDatagram func(*Socket, Datagram) // receives datagrams other than Data
	closed     atomic.Bool             // Close was called
	err        error                   // why the socket is closed, guarded by mu

	mu       sync.Mutex
	flows    map[uint64]*Flow
	order    uint64 // of arrivals
	overflow uint32 // packets that the socket dropped
}

// Datagram is a received datagram that is not a packet of a train.
type Datagram struct {
	Header
	From netip.AddrPort
	// At is the kernel's timestamp, in ns of CLOCK_REALTIME.
	At int64
}

// Open takes over conn and starts to read from it. onDatagram, which may be nil, gets the
// datagrams that are not packets of a train, on the reading goroutine.
//
// The socket is removed from the runtime's network poller. The kernel would wake the
// poller while it receives a packet, which would delay the timestamp of the next packet.
func Open(conn *net.UDPConn, onDatagram func(*Socket, Datagram)) (*Socket, error) {
	s := &Socket{local: conn.LocalAddr().(*net.UDPAddr).AddrPort(), onDatagram: onDatagram, flows: map[uint64]*Flow{}}
	if r, ok := conn.RemoteAddr().(*net.UDPAddr); ok {
		s.remote = r.AddrPort()
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	// conn.File would add the copy to the poller again.
	var dup error
	err = raw.Control(func(fd uintptr) { s.fd, dup = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dup); err != nil {
		return nil, err
	}
	conn.Close()
	if err := options(s.fd); err != nil {
		unix.Close(s.fd)
		return nil, fmt.Errorf("cannot set UDP socket options: %w", err)
	}
	go s.read()
	return s, nil
}

// options sets the options of a socket for trains.
func options(fd int) error {
	for _, o := range []struct{ force, plain int }{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.force, buffers) != nil { // not root
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.plain, buffers); err != nil {
				return err
			}
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return err
	}
	// No fragments: a packet is one frame. The kernel's path MTU is ignored, since a
	// train finds the MTU itself.
	v4 := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	v6 := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	if v4 != nil && v6 != nil {
		return v4
	}
	return nil
}

// Close closes the socket. Waiting calls of Collect return net.ErrClosed.
func (s *Socket) Close() error {
	s.end(net.ErrClosed)
	s.closed.Store(true)
	return nil
}

// end sets the error of the socket and wakes all waiting calls of Collect.
func (s *Socket) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	for _, f := range s.flows {
		f.notify()
	}
}

// Local returns the socket's own address.
func (s *Socket) Local() netip.AddrPort { return s.local }

// SendHeader sends one datagram that is not a packet of a train.
func (s *Socket) SendHeader(h Header, to netip.AddrPort) error {
	var name [unix.SizeofSockaddrInet6]byte
	size := s.name(to, &name)
	b := h.Bytes()
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	m := unix.Msghdr{Iov: &iov, Iovlen: 1}
	if size > 0 {
		m.Name, m.Namelen = &name[0], size
	}
	if _, _, e := unix.Syscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&m)), unix.MSG_DONTWAIT); e != 0 && !reported(e) {
		return e
	}
	return nil
}

// name writes a peer's address as a sockaddr of the socket's family, and returns its
// size, or 0 for a connected socket.
func (s *Socket) name(to netip.AddrPort, b *[unix.SizeofSockaddrInet6]byte) uint32 {
	if s.remote.IsValid() {
		return 0
	}
	if s.local.Addr().Is4() {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(b))
		sa.Family, sa.Addr = unix.AF_INET, to.Addr().Unmap().As4()
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], to.Port())
		return unix.SizeofSockaddrInet4
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(b))
	sa.Family, sa.Addr = unix.AF_INET6, to.Addr().As16()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], to.Port())
	return unix.SizeofSockaddrInet6
}

// named returns the address in a sockaddr.
func named(b *[unix.SizeofSockaddrInet6]byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port)
	}
	return netip.AddrPort{}
}

// Queue returns the receive queue (NAPI instance) of the last packet, or 0 if the kernel
// gives none (SO_INCOMING_NAPI_ID). With interrupt coalescing, packets of several queues
// arrive in the wrong order (estimation seed, 3.6.3).
func (s *Socket) Queue() (id int) {
	id, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
	return id
}

// MTU returns the MTU of the device or route that leads to the peer of a connected
// socket.
func (s *Socket) MTU() (int, error) { return mtu(s.fd, s.remote.Addr()) }

// MTU returns the MTU of the device or route that leads to the peer of c.
func MTU(c *net.UDPConn) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	call := raw.Control(func(fd uintptr) { n, err = mtu(int(fd), c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr()) })
	return n, errors.Join(call, err)
}

func mtu(fd int, to netip.Addr) (int, error) {
	if to.Unmap().Is4() {
		return unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
	}
	return unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
}

func uintptrOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
