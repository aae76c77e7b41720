package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Layer-2 and header bytes of a full frame.
const (
	etherHeader = 14
	mtu         = 1500
	udp4Headers = 20 + 8
	udp6Headers = 40 + 8
	// mptcpOverhead is the option of a full segment that maps it into the stream (DSS with 4 bytes of
	// acknowledgement and 8 of sequence number, 22 in all, padded to 24: RFC 8684 3.3).
	mptcpOverhead = 24
)

// end is one side of a flow: its host, address and requested port.
type end struct {
	host Host
	addr netip.AddrPort
}

func (f *flow) ends(hosts Hosts) (from, to end, err error) {
	for _, e := range []struct {
		*end
		name string
		port uint16
	}{{&from, f.From, f.SrcPort}, {&to, f.To, f.DstPort}} {
		if e.host, err = hosts(e.name); err != nil {
			return
		}
		addr, err := e.host.Addr(f.IPv6)
		if err != nil {
			return from, to, err
		}
		e.addr = netip.AddrPortFrom(addr, e.port)
	}
	return from, to, nil
}

// connect opens every flow's sockets. All TCP handshakes run in parallel, so that hundreds of flows
// over a long path take one round trip.
func (s *Session) connect(ctx context.Context, hosts Hosts) error {
	listeners := map[listenKey]*listener{}
	defer func() {
		for _, l := range listeners {
			if l.fd >= 0 {
				unix.Close(l.fd)
			}
			for _, fd := range l.accepted {
				unix.Close(fd)
			}
		}
	}()
	opening := map[*flow]*listener{}
	batch := newUDPBatch()
	for i, f := range s.flows {
		from, to, err := f.ends(hosts)
		switch {
		case err != nil:
		case f.Requests != nil || f.Transfer != nil:
			err = s.openApp(f, from, to)
		case f.Protocol == UDP:
			err = f.openUDP(from, to, batch)
		default:
			opening[f], err = f.openTCP(i, from, to, listeners)
		}
		if err != nil {
			return fmt.Errorf("flow %q: %w", f.Name, err)
		}
	}
	deadline := time.Now().Add(connectPatience)
	for _, f := range s.flows {
		l := opening[f]
		if l == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.finishTCP(l, deadline); err != nil {
			return fmt.Errorf("flow %q: connect: %w", f.Name, err)
		}
	}
	if s.apps != nil {
		return s.apps.settle(deadline)
	}
	return nil
}

// openApp opens what an application needs before the start.
func (s *Session) openApp(f *flow, from, to end) (err error) {
	if s.apps == nil {
		if s.apps, err = newApps(); err != nil {
			return err
		}
	}
	s.apps.flows = append(s.apps.flows, f)
	if f.Requests != nil {
		f.app = newRequester(s.apps, f, from, to, f.Seed)
	} else {
		f.app = newTransferrer(s.apps, f, from, to)
	}
	f.conns = map[*conn]struct{}{}
	return f.app.open()
}

// openUDP binds and connects both ends, without sending a packet.
func (f *flow) openUDP(from, to end, batch *udpBatch) error {
	open := func(e end) (fd int, addr netip.AddrPort, err error) {
		err = e.host.Do(func() error {
			if fd, err = newSocket(&f.Flow, unix.SOCK_DGRAM, e.addr); err != nil {
				return err
			}
			addr, err = localAddr(fd)
			return err
		})
		return fd, addr, err
	}
	var err error
	if f.send, f.from, err = open(from); err != nil {
		return err
	}
	if f.recv, f.to, err = open(to); err != nil {
		return err
	}
	if err := unix.Connect(f.send, sockaddr(f.to)); err != nil {
		return fmt.Errorf("cannot connect to %v: %w", f.to, err)
	}
	if err := unix.Connect(f.recv, sockaddr(f.from)); err != nil {
		return fmt.Errorf("cannot connect to %v: %w", f.from, err)
	}
	headers := udp4Headers
	if f.IPv6 {
		headers = udp6Headers
	}
	f.payload = f.Payload
	if f.payload == 0 {
		f.payload = mtu - headers
	}
	f.frame = f.payload + headers + etherHeader
	if f.sender, err = newUDPSender(f); err != nil {
		return err
	}
	f.receiver, err = newUDPReceiver(f, batch)
	return err
}

// listener accepts the connections of all flows to one port.
type listener struct {
	fd       int
	addr     netip.AddrPort
	accepted map[netip.AddrPort]int // by remote address, until its flow takes it
	flows    int                    // flows without their connection
	settings socketSettings
}

type listenKey struct {
	host string
	addr netip.AddrPort
	own  int // number of the flow, if the port is not specified
}

// openTCP starts a handshake and returns the listener that will accept it.
func (f *flow) openTCP(number int, from, to end, listeners map[listenKey]*listener) (*listener, error) {
	client, server, serverName := from, to, f.To
	if f.Download {
		client, server, serverName = to, from, f.From
	}
	key := listenKey{serverName, server.addr, 0}
	if server.addr.Port() == 0 {
		key.own = number + 1
	}
	l := listeners[key]
	if l == nil {
		l = &listener{accepted: map[netip.AddrPort]int{}, settings: f.settings()}
		var err error
		if l.fd, l.addr, err = f.listen(server); err != nil {
			return nil, err
		}
		listeners[key] = l
	}
	if l.settings != f.settings() {
		return nil, fmt.Errorf("port %d at %q is used by a flow with different mptcp, buffers or window clamp: give it another port", server.addr.Port(), serverName)
	}
	l.flows++
	fd, addr, err := f.dial(client, l.addr)
	if err != nil {
		return nil, err
	}
	f.send, f.from, f.to = fd, addr, l.addr
	if f.Download {
		f.send, f.recv, f.from, f.to = -1, fd, l.addr, addr
	}
	return l, nil
}

// listen opens a listening socket at e. One of multipath TCP listens at all addresses of the host: a subflow to another address
// that the host announces needs a listener there.
func (f *flow) listen(e end) (fd int, addr netip.AddrPort, err error) {
	at := e.addr
	if f.MPTCP {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		if e.addr.Addr().Is6() {
			at = netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
		}
	}
	err = e.host.Do(func() error {
		if fd, err = newSocket(&f.Flow, unix.SOCK_STREAM, at); err != nil {
			return err
		}
		err := unix.Listen(fd, 4096)
		if err == nil {
			addr, err = localAddr(fd)
		}
		if err != nil {
			unix.Close(fd)
		}
		return err
	})
	addr = netip.AddrPortFrom(e.addr.Addr(), addr.Port())
	if err != nil {
		err = fmt.Errorf("listen: %w", err)
	}
	return fd, addr, err
}

// dial starts a handshake.
func (f *flow) dial(from end, to netip.AddrPort) (fd int, addr netip.AddrPort, err error) {
	err = from.host.Do(func() error {
		if fd, err = newSocket(&f.Flow, unix.SOCK_STREAM, from.addr); err != nil {
			return err
		}
		if err = f.setCongestion(fd); err == nil {
			if err = unix.Connect(fd, sockaddr(to)); errors.Is(err, unix.EINPROGRESS) {
				err = nil
			}
		}
		if err == nil {
			addr, err = localAddr(fd)
		}
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("cannot connect to %v: %w", to, err)
		}
		return nil
	})
	return fd, addr, err
}

// finishTCP waits for the handshake and takes the accepted socket.
func (f *flow) finishTCP(l *listener, deadline time.Time) error {
	connected, peer := &f.send, f.from
	other := &f.recv
	if f.Download {
		connected, other, peer = &f.recv, &f.send, f.to
	}
	if err := waitReady(*connected, unix.POLLOUT, deadline); err != nil {
		return err
	}
	if e, err := unix.GetsockoptInt(*connected, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
		return errors.Join(err, unix.Errno(e))
	}
	for {
		if fd, ok := l.accepted[peer]; ok {
			*other = fd
			delete(l.accepted, peer)
			if l.flows--; l.flows == 0 {
				if f.MPTCP {
					f.joins = l.fd
				} else {
					unix.Close(l.fd)
				}
				l.fd = -1
			}
			break
		}
		if err := waitReady(l.fd, unix.POLLIN, deadline); err != nil {
			return err
		}
		fd, sa, err := unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return err
		}
		l.accepted[addrPort(sa)] = fd
	}
	if err := f.markAccepted(*other); err != nil {
		return err
	}
	if f.Download {
		if err := f.setCongestion(f.send); err != nil {
			return err
		}
	}
	return f.describeTCP()
}

// describeTCP sets up both ends.
func (f *flow) describeTCP() (err error) {
	if err = f.describe(f.send); err != nil {
		return err
	}
	f.sender, err = newTCPSender(f)
	f.receiver = &tcpReceiver{f}
	return err
}

// describe reads what the ends of a flow's first connection negotiated.
func (f *flow) describe(fd int) error {
	if f.frame != 0 {
		return nil
	}
	state, err := stateOf(fd, f.MPTCP)
	if err != nil {
		return err
	}
	if f.ECN && !state.ecn {
		client := f.From
		if f.Download {
			client = f.To
		}
		return fmt.Errorf("the ends did not negotiate ECN: set the sysctl net.ipv4.tcp_ecn to 1 in node %q, and not to 0 in the other", client)
	}
	f.agreed = state
	f.payload = state.mss
	if state.subflows > 0 {
		f.payload -= mptcpOverhead
	}
	f.frame = state.mtu + etherHeader
	f.congestion, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	f.congestion = strings.TrimRight(f.congestion, "\x00")
	return err
}
