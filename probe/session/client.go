package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/train"
	"headgate.dev/headgate/unit"
)

// Options of a client.
type Options struct {
	// Host is the name or address of the server, Port its port; 0 is the default port.
	Host string
	Port int
	// Network is "tcp", or "tcp4" or "tcp6" for one version of IP; "" is "tcp".
	Network string
	Auth    peerauth.Credentials
	// OnWait receives the number of clients that are ahead in the queue; it may be nil.
	OnWait func(before int)
	// Socket is shared by clients that need the order of arrival across several servers.
	// nil opens a socket for this client.
	Socket *Socket
	// QueueTimeout bounds the wait for the turn, after which Dial fails with ErrBusy. 0 is no
	// bound.
	QueueTimeout time.Duration
	// Caps, if not nil, bound what this end sends.
	Caps *Caps
}

// Client is the requesting end of a session.
type Client struct {
	// Caps are those of the server. MTU is the largest IP packet that passed in each
	// direction. RTT is the round trip of the handshake.
	Caps Caps
	MTU  map[probe.Direction]int
	RTT  time.Duration
	// Peer is the address of the server, ObservedAddress this end's address as the server
	// sees it.
	Peer            netip.AddrPort
	ObservedAddress string

	conn          *tls.Conn
	l             *lines
	control       atomic.Int64 // bytes, both directions
	data          [2]unit.Bytes
	socket        *Socket
	own           bool
	flow          *train.Flow
	apart         map[probe.Direction]bool // packets that are sent together arrive unsegmented
	restoreIdle   func()                   // allows processors to enter idle states again
	id            uint64
	trainNumber   uint32
	remainingCaps *allowance // nil is no bound
	budget        unit.Bytes // see Limit; 0 is no bound
	failed        error
}

// Limit bounds the layer 2 bytes of each later call of Send, with those that are sent again: a train that an end disturbed is sent again only within it. 0 is no
// bound.
func (c *Client) Limit(bytes unit.Bytes) { c.budget = bytes }

// Socket receives the trains of one or more servers.
type Socket struct {
	*train.Socket
	challenges chan train.Datagram
}

// NewSocket opens a socket on any port. network is "udp", "udp4" or "udp6".
func NewSocket(network string) (*Socket, error) {
	c, err := net.ListenUDP(network, nil)
	if err != nil {
		return nil, err
	}
	s := &Socket{challenges: make(chan train.Datagram, 16)}
	s.Socket, err = train.Open(c, func(_ *train.Socket, h train.Datagram) {
		if h.Kind == train.Challenge {
			select {
			case s.challenges <- h:
			default:
			}
		}
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// countingConn adds the bytes of a connection, in both directions, to n.
type countingConn struct {
	io.ReadWriter
	n *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.ReadWriter.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.ReadWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// Dial starts a session and waits for its turn.
func Dial(ctx context.Context, o Options) (*Client, error) {
	return connect(ctx, o, func(ctx context.Context, c *Client) error { return c.begin(ctx, o) })
}

// connect connects to a server, authenticates both ends, and calls use. It closes the
// client if any of these fails.
func connect(ctx context.Context, o Options, use func(context.Context, *Client) error) (*Client, error) {
	host, port := o.Host, o.Port
	if port == 0 {
		port = probe.Port
	}
	network := o.Network
	if network == "" {
		network = "tcp"
	}
	d := net.Dialer{Control: smallSegments}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialing, stop := context.WithTimeout(ctx, 2*handshakeTimeout)
	defer stop()
	tcp, err := d.DialContext(dialing, network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w: start \"headgate probe serve\" there, and allow TCP port %d in firewalls on the path", err, port)
	}
	c := &Client{conn: tls.Client(tcp, o.Auth.Client(host)), MTU: map[probe.Direction]int{}, apart: map[probe.Direction]bool{}}
	c.l = &lines{in: bufio.NewReader(countingConn{c.conn, &c.control}), out: countingConn{c.conn, &c.control}, longest: longestAnswer}
	halt := context.AfterFunc(ctx, func() { tcp.Close() })
	if err = c.handshake(ctx, o); err == nil {
		err = use(ctx, c)
	}
	if !halt() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

// controlSegment is the maximum segment size of the control connection, in bytes. Its packets pass a path whose MTU is smaller than that of its ends and whose
// "packet too big" messages are filtered, such as PPPoE: the smallest MTU of IPv4 is 576.
const controlSegment = 536

// smallSegments sets the maximum segment size of a connection, in both directions: the peer learns it from the SYN.
func smallSegments(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, controlSegment) })
	return errors.Join(err, set)
}

// handshake does the TLS handshake and the authentication.
func (c *Client) handshake(ctx context.Context, o Options) error {
	c.conn.SetDeadline(time.Now().Add(2 * handshakeTimeout))
	if err := c.conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake failed: %w", err)
	}
	if o.Auth.Key != nil {
		mac, err := o.Auth.MAC(c.conn, clientMACLabel)
		if err != nil {
			return err
		}
		if err := c.l.write(message{Proof: &proof{mac}}); err != nil {
			return err
		}
		m, err := c.read()
		if err != nil {
			return err
		}
		if err := checkProof(o.Auth, c.conn, serverMACLabel, m.Proof); err != nil {
			return err
		}
	}
	return nil
}

// begin waits for the turn, shows the server this end's UDP address, and finds the MTU.
func (c *Client) begin(ctx context.Context, o Options) error {
	if err := c.l.write(message{Open: &open{Version}}); err != nil {
		return err
	}
	w, err := c.awaitTurn(o)
	if err != nil {
		return err
	}
	c.Caps, c.id = w.Caps, uint64(w.Session)
	if o.Caps != nil {
		c.remainingCaps = &allowance{caps: *o.Caps, ends: time.Now().Add(o.Caps.Time)}
	}
	remote := c.conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	c.Peer = netip.AddrPortFrom(remote.Addr().Unmap(), uint16(w.Data))
	if err := c.join(o); err != nil {
		return err
	}
	if c.restoreIdle, err = awake.Start(); err != nil {
		return err
	}
	if err := c.prove(ctx); err != nil {
		return err
	}
	m, err := c.read()
	if err != nil {
		return err
	}
	if m.Ready == nil {
		return errors.New("unexpected message from the server: want \"ready\"")
	}
	c.ObservedAddress = m.Ready.ObservedAddress
	return c.findMTU(ctx, m.Ready.MTU)
}

// ErrBusy is the error of Dial if the server gave no turn within QueueTimeout.
var ErrBusy = errors.New("server is busy: another client is measuring")

// awaitTurn waits for the turn.
func (c *Client) awaitTurn(o Options) (*welcome, error) {
	begun := time.Now()
	for {
		c.conn.SetDeadline(time.Now().Add(idleTimeout))
		m, err := c.read()
		if err != nil {
			return nil, err
		}
		if m.Welcome != nil {
			return m.Welcome, nil
		}
		if m.Wait == nil {
			continue
		}
		if o.QueueTimeout > 0 && time.Since(begun) >= o.QueueTimeout {
			return nil, ErrBusy
		}
		if o.OnWait != nil {
			o.OnWait(m.Wait.Before)
		}
	}
}

// join opens the UDP socket, or uses the shared one.
func (c *Client) join(o Options) (err error) {
	if c.socket = o.Socket; c.socket == nil {
		network := "udp6"
		if c.Peer.Addr().Is4() {
			network = "udp4"
		}
		if c.socket, err = NewSocket(network); err != nil {
			return err
		}
		c.own = true
	}
	return nil
}

// prove returns the server's nonce, which shows that this end receives what the server
// sends to it. Any of the datagrams may be lost. The server's UDP port is the one that it names, or the one that the client has dialed: a port forward may give
// the server another port than it knows.
func (c *Client) prove(ctx context.Context) error {
	const tries, pause = 20, 200 * time.Millisecond
	named, dialed := c.Peer, c.conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port()
	for range tries {
		begun := time.Now()
		for _, port := range slices.Compact([]uint16{named.Port(), dialed}) {
			if err := c.socket.SendHeader(train.Header{Kind: train.Hello, Session: c.id}, netip.AddrPortFrom(named.Addr(), port)); err != nil {
				return fmt.Errorf("cannot send UDP datagram to %s: %w", netip.AddrPortFrom(named.Addr(), port), err)
			}
		}
		select {
		case h := <-c.socket.challenges:
			from := h.From.Port()
			if h.Session != c.id || from != named.Port() && from != dialed {
				continue
			}
			c.Peer = netip.AddrPortFrom(named.Addr(), from)
			c.flow = c.socket.Join(c.id, c.Peer)
			c.RTT = time.Duration(h.At - begun.UnixNano())
			h.Kind = train.Proof
			for range 3 {
				if err := c.socket.SendHeader(h.Header, c.Peer); err != nil {
					return err
				}
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("server responds on TCP port %d, but no UDP datagram arrived from its port %d: allow UDP in firewalls and NAT on the path", dialed, named.Port())
}

// read returns the next message of the server. A refusal is an error.
func (c *Client) read() (message, error) {
	m, err := c.l.read()
	switch {
	case errors.Is(err, io.EOF):
		return m, errors.New("server closed the connection")
	case err != nil:
		return m, err
	case m.Refused != "":
		return m, fmt.Errorf("server refused the request: %s", m.Refused)
	}
	return m, nil
}

// sizes are IP packet sizes that pass almost everywhere: Ethernet, PPPoE, WireGuard, other tunnels, and the
// minimum MTUs of IPv6 and IPv4.
var sizes = []int{1500, 1492, 1420, 1400, 1280, 576}

// findMTU sends a packet of the largest size in both directions and, where it does not arrive, some packets of each size. The largest that arrives is the MTU of the
// path. All of them at once would delay others' traffic on a link of 1 Mbit/s by 0.2 s.
func (c *Client) findMTU(ctx context.Context, servers int) error {
	own, err := c.deviceMTU()
	if err != nil {
		own = sizes[0]
	}
	largest := min(own, servers, sizes[0])
	first, all := probe.Uniform("session/mtu", 1, largest, 0), probe.Train{Purpose: "session/mtu"}
	for _, size := range append([]int{largest}, sizes...) {
		if size <= largest && (len(all.Parts) == 0 || size < largest) {
			all.Parts = append(all.Parts, probe.Part{Count: 3, Size: size, Pause: time.Millisecond})
		}
	}
	for _, d := range probe.Directions {
		found := 0
		for _, t := range []probe.Train{first, all} {
			c.MTU[d] = largest
			s, err := c.exchange(ctx, d, t)
			if err != nil {
				return err
			}
			for _, part := range s.Split() {
				if len(part.Arrived) > 0 {
					found = max(found, part.Parts[0].Size)
				}
			}
			if found > 0 {
				break
			}
		}
		if c.MTU[d] = found; found == 0 {
			return fmt.Errorf("none of %d packets arrived in direction %s: UDP port %d is blocked on the path", first.Count()+all.Count(), d, c.Peer.Port())
		}
		if c.apart[d], err = c.unsegmented(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// together packets of togetherSize bytes show whether something on the path segments what is sent with one call. They take 5 ms on a link of 0.5 Mbit/s.
const together, togetherSize = 3, 100

// unsegmented reports whether packets that are sent with one call arrive as one: the receiver's kernel segments them, with one timestamp, and a limiter on the
// path sees a packet of up to 64 KB. So it is between containers of one host (veth), and on loopback.
func (c *Client) unsegmented(ctx context.Context, d probe.Direction) (bool, error) {
	for range 3 { // a packet may be lost
		s, err := c.exchange(ctx, d, probe.Train{Purpose: "session/segments", Parts: []probe.Part{{Count: together, Size: togetherSize}}})
		if err != nil {
			return false, err
		}
		if len(s.Arrived) == together {
			return !slices.ContainsFunc(s.Arrived, func(a probe.Arrival) bool { return a.At != s.Arrived[0].At }), nil
		}
	}
	return false, nil
}

func (c *Client) deviceMTU() (int, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(c.Peer))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return train.MTU(conn)
}

// Close ends the session.
func (c *Client) Close() error {
	if c.failed == nil {
		c.conn.SetWriteDeadline(time.Now().Add(time.Second))
		c.l.write(message{Bye: &bye{}})
	}
	if c.flow != nil {
		c.socket.Remove(c.flow)
	}
	if c.own {
		c.socket.Close()
	}
	if c.restoreIdle != nil {
		c.restoreIdle()
	}
	return c.conn.Close()
}

// Spent returns the layer 2 bytes that the session has sent in each direction, and the
// bytes of the control connection in both directions.
func (c *Client) Spent() (out, in, control unit.Bytes) {
	return c.data[0], c.data[1], unit.Bytes(c.control.Load())
}
