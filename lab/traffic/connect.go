package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
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
)

// end is one side of a flow: its host, address and the port that it asks for.
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

// connect opens every flow's sockets. All TCP handshakes are under way at once,
// so that hundreds of flows over a long path take one round trip.
func (s *Session) connect(ctx context.Context, hosts Hosts) error {
	listeners := map[listenKey]*listener{}
	defer func() {
		for _, l := range listeners {
			unix.Close(l.fd)
		}
	}()
	opening := map[*flow]*listener{}
	for i, f := range s.flows {
		from, to, err := f.ends(hosts)
		if err == nil {
			if f.Protocol == UDP {
				err = f.openUDP(from, to)
			} else {
				opening[f], err = f.openTCP(i, from, to, listeners)
			}
		}
		if err != nil {
			return fmt.Errorf("flow %q: %w", f.Name, err)
		}
	}
	deadline := time.Now().Add(connectPatience)
	for _, f := range s.flows {
		if f.Protocol == UDP {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.finishTCP(opening[f], deadline); err != nil {
			return fmt.Errorf("flow %q: connect: %w", f.Name, err)
		}
	}
	return nil
}

// openUDP binds and connects both ends; no packet is needed for that.
func (f *flow) openUDP(from, to end) error {
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
		return fmt.Errorf("connect to %v: %w", f.to, err)
	}
	if err := unix.Connect(f.recv, sockaddr(f.from)); err != nil {
		return fmt.Errorf("connect to %v: %w", f.from, err)
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
	f.sender, err = newUDPSender(f)
	if err != nil {
		return err
	}
	f.receiver = newUDPReceiver(f)
	return nil
}

// listener takes the connections of all flows to one port.
type listener struct {
	fd       int
	addr     netip.AddrPort
	accepted map[netip.AddrPort]int // by the other end, until its flow asks
}

type listenKey struct {
	host string
	addr netip.AddrPort
	own  int // the flow's number, if the port is ours to choose
}

// openTCP starts a handshake and returns the listener that will take it.
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
		l = &listener{accepted: map[netip.AddrPort]int{}}
		err := server.host.Do(func() (err error) {
			if l.fd, err = newSocket(&f.Flow, unix.SOCK_STREAM, server.addr); err != nil {
				return err
			}
			if l.addr, err = localAddr(l.fd); err == nil {
				err = unix.Listen(l.fd, 4096)
			}
			if err != nil {
				unix.Close(l.fd)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		listeners[key] = l
	}
	var fd int
	var addr netip.AddrPort
	err := client.host.Do(func() (err error) {
		if fd, err = newSocket(&f.Flow, unix.SOCK_STREAM, client.addr); err != nil {
			return err
		}
		if addr, err = localAddr(fd); err == nil && !f.Download {
			err = f.setCongestion(fd)
		}
		if err == nil {
			err = unix.Connect(fd, sockaddr(l.addr))
		}
		if err != nil && !errors.Is(err, unix.EINPROGRESS) {
			unix.Close(fd)
			return fmt.Errorf("connect to %v: %w", l.addr, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.send, f.from, f.to = fd, addr, l.addr
	if f.Download {
		f.send, f.recv, f.from, f.to = -1, fd, l.addr, addr
	}
	return l, nil
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

// markAccepted gives an accepted socket the flow's own marking: it has its
// listener's, which flows may share.
func (f *flow) markAccepted(fd int) error {
	level, opt := unix.IPPROTO_IP, unix.IP_TOS
	if f.IPv6 {
		level, opt = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	return errors.Join(
		unix.SetsockoptInt(fd, level, opt, int(f.DSCP)<<2),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(f.Mark)),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
	)
}

func (f *flow) setCongestion(fd int) error {
	name := f.Congestion
	if name == "" {
		name = DefaultCongestion
	}
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if errors.Is(err, unix.ENOENT) {
		known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		return fmt.Errorf("this kernel has no congestion control %q: choose one of %s", name, strings.TrimSpace(string(known)))
	}
	return err
}

// describeTCP learns the connection's segment size and sets up both ends.
func (f *flow) describeTCP() (err error) {
	if f.payload, err = unix.GetsockoptInt(f.send, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err != nil {
		return err
	}
	info, err := unix.GetsockoptTCPInfo(f.send, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return err
	}
	f.frame = int(info.Pmtu) + etherHeader
	f.congestion, err = unix.GetsockoptString(f.send, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return err
	}
	f.congestion = strings.TrimRight(f.congestion, "\x00")
	f.sender, err = newTCPSender(f)
	f.receiver = &tcpReceiver{f}
	return err
}
