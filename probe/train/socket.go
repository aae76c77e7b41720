package train

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// buffers is what a socket asks for in each direction, in bytes: a whole train,
// so that no packet is lost because a program was not there to read, nor waits in
// the program because a shaper of this machine holds others back.
const buffers = 32 << 20

// Socket is a UDP socket for trains to and from one or more peers.
type Socket struct {
	conn    *net.UDPConn
	raw     rawConn
	batch   *ipv4.PacketConn
	control func(Header, netip.AddrPort) // what is not Data

	mu       sync.Mutex
	flows    map[uint64]*Flow
	order    uint64 // of arrivals
	overflow uint32 // the socket's own count
	closed   error
}

type rawConn interface{ Control(func(uintptr)) error }

// Open takes conn over and begins to read from it. control gets what is no packet
// of a train, from the reading goroutine; it may be nil.
func Open(conn *net.UDPConn, control func(Header, netip.AddrPort)) (*Socket, error) {
	s := &Socket{conn: conn, batch: ipv4.NewPacketConn(conn), control: control, flows: map[uint64]*Flow{}}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s.raw = raw
	var set error
	err = raw.Control(func(fd uintptr) { set = options(int(fd)) })
	if err == nil {
		err = set
	}
	if err != nil {
		return nil, fmt.Errorf("the UDP socket: %w", err)
	}
	go s.read()
	return s, nil
}

// options of a socket for trains.
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
	// No fragments: a packet is one frame. The kernel's idea of the path's MTU is not
	// asked, since a train finds out by itself.
	v4 := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	v6 := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	if v4 != nil && v6 != nil {
		return v4
	}
	return nil
}

// Close ends it; what waits for arrivals is told.
func (s *Socket) Close() error { return s.conn.Close() }

// Local is its own address.
func (s *Socket) Local() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Tell sends one datagram that is no packet of a train, filled up to an IP packet of
// size bytes.
func (s *Socket) Tell(h Header, to netip.AddrPort, size int) error {
	b := make([]byte, max(size-headers(to.Addr()), headerSize))
	h.Put(b)
	var err error
	if s.conn.RemoteAddr() != nil {
		_, err = s.conn.Write(b)
	} else {
		_, err = s.conn.WriteToUDPAddrPort(b, to)
	}
	return err
}

func uintptrOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Queue is the receive queue (NAPI instance) that the last packet came through, 0 if
// the kernel does not say (SO_INCOMING_NAPI_ID). Packets that come through several have
// lost their order where interrupts are coalesced (estimation seed, 3.6.3).
func (s *Socket) Queue() (id int) {
	s.raw.Control(func(fd uintptr) {
		id, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
	})
	return id
}

// MTU is that of the device, or the route, that leads to the peer of a connected
// socket.
func (s *Socket) MTU() (int, error) { return MTU(s.conn) }

// MTU is the same of a plain socket.
func MTU(c *net.UDPConn) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	call := raw.Control(func(fd uintptr) {
		if c.RemoteAddr().(*net.UDPAddr).IP.To4() != nil {
			n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU)
		} else {
			n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU)
		}
	})
	return n, errors.Join(call, err)
}
