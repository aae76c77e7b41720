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
	"strconv"
	"sync/atomic"
	"time"

	"headgate/internal/awake"
	"headgate/probe"
	"headgate/probe/train"
	"headgate/unit"
)

// Options of a client.
type Options struct {
	// Host is the server's name or address, Port its own if it is not the usual one.
	Host string
	Port int
	// Network is "tcp", or "tcp4" or "tcp6" to have that protocol.
	Network string
	Auth    Auth
	// Waiting is told how many clients measure before this one; it may be nil.
	Waiting func(before int)
	// Socket is for clients that share one, so that the order in which the trains of
	// several servers come is kept; nil is one of its own.
	Socket *Socket
	// Patience is how long it waits for its turn: then ErrBusy. 0 is for as long as it
	// takes.
	Patience time.Duration
	// Caps, if not nil, bound what this end sends.
	Caps *Caps
}

// Client is one end of a session that asks.
type Client struct {
	// Caps are the server's, MTU the largest IP packet that passed in each direction,
	// RTT the least that the handshake saw.
	Caps Caps
	MTU  map[probe.Direction]int
	RTT  time.Duration
	// Peer is the server's address, Seen our own as the server sees it.
	Peer netip.AddrPort
	Seen string

	conn    *tls.Conn
	l       *lines
	control atomic.Int64 // bytes, both directions
	data    [2]unit.Bytes
	socket  *Socket
	own     bool
	flow    *train.Flow
	rest    func() // lets the processors halt again
	id      uint64
	number  uint32
	left    *allowance // nil is no bounds
	broken  error
}

// Socket receives the trains of one or more servers.
type Socket struct {
	*train.Socket
	challenges chan train.Heard
}

// NewSocket opens one on any port. network is "udp", "udp4" or "udp6".
func NewSocket(network string) (*Socket, error) {
	c, err := net.ListenUDP(network, nil)
	if err != nil {
		return nil, err
	}
	s := &Socket{challenges: make(chan train.Heard, 16)}
	s.Socket, err = train.Open(c, func(_ *train.Socket, h train.Heard) {
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

// counted counts what a connection carries.
type counted struct {
	io.ReadWriter
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadWriter.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.ReadWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// Dial begins a session, and waits for its turn.
func Dial(ctx context.Context, o Options) (*Client, error) {
	return connect(ctx, o, func(ctx context.Context, c *Client) error { return c.begin(ctx, o) })
}

// connect reaches a server, proves who is there, and has use go on from there. The
// client is closed if that fails.
func connect(ctx context.Context, o Options, use func(context.Context, *Client) error) (*Client, error) {
	host, port := o.Host, o.Port
	if port == 0 {
		port = probe.Port
	}
	network := o.Network
	if network == "" {
		network = "tcp"
	}
	var d net.Dialer
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialing, stop := context.WithTimeout(ctx, 2*patience)
	defer stop()
	tcp, err := d.DialContext(dialing, network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%w: does \"headgate probe serve\" run there, and does nothing in between refuse TCP port %d?", err, port)
	}
	c := &Client{conn: tls.Client(tcp, o.Auth.client(host)), MTU: map[probe.Direction]int{}}
	c.l = &lines{in: bufio.NewReader(counted{c.conn, &c.control}), out: counted{c.conn, &c.control}, longest: longestAnswer}
	halt := context.AfterFunc(ctx, func() { tcp.Close() })
	if err = c.greet(ctx, o); err == nil {
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

// greet is the handshake up to where each end knows the other.
func (c *Client) greet(ctx context.Context, o Options) error {
	c.conn.SetDeadline(time.Now().Add(2 * patience))
	if err := c.conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if o.Auth.Key != nil {
		mac, err := o.Auth.mac(c.conn, byClient)
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
		if err := o.Auth.check(c.conn, byServer, m.Proof); err != nil {
			return err
		}
	}
	return nil
}

// begin waits for the turn, and finds out what gets through.
func (c *Client) begin(ctx context.Context, o Options) error {
	if err := c.l.write(message{Open: &open{Version}}); err != nil {
		return err
	}
	w, err := c.welcomed(o)
	if err != nil {
		return err
	}
	c.Caps, c.id = w.Caps, uint64(w.Session)
	if o.Caps != nil {
		c.left = &allowance{caps: *o.Caps, ends: time.Now().Add(o.Caps.Time)}
	}
	remote := c.conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	c.Peer = netip.AddrPortFrom(remote.Addr().Unmap(), uint16(w.Data))
	if err := c.join(o); err != nil {
		return err
	}
	if c.rest, err = awake.Keep(); err != nil {
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
		return errors.New("the server said something else than \"ready\"")
	}
	c.Seen = m.Ready.Seen
	return c.findMTU(ctx, m.Ready.MTU)
}

// ErrBusy tells that a server's turn did not come within Patience.
var ErrBusy = errors.New("others measure there")

// welcomed waits for the turn.
func (c *Client) welcomed(o Options) (*welcome, error) {
	begun := time.Now()
	for {
		c.conn.SetDeadline(time.Now().Add(silence))
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
		if o.Patience > 0 && time.Since(begun) >= o.Patience {
			return nil, ErrBusy
		}
		if o.Waiting != nil {
			o.Waiting(m.Wait.Before)
		}
	}
}

// join opens the socket for data.
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
	c.flow = c.socket.Join(c.id, c.Peer)
	return nil
}

// prove shows the server that what it sends to us arrives: its nonce goes back.
// Either datagram may be lost.
func (c *Client) prove(ctx context.Context) error {
	const tries, pause = 20, 200 * time.Millisecond
	for range tries {
		begun := time.Now()
		if err := c.socket.Tell(train.Header{Kind: train.Hello, Session: c.id}, c.Peer); err != nil {
			return fmt.Errorf("UDP to %s: %w", c.Peer, err)
		}
		select {
		case h := <-c.socket.challenges:
			if h.Session != c.id {
				continue
			}
			c.RTT = time.Duration(h.At - begun.UnixNano())
			h.Kind = train.Proof
			for range 3 {
				if err := c.socket.Tell(h.Header, c.Peer); err != nil {
					return err
				}
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("the server answers on TCP port %d, but no UDP datagram has come back from its port %d: a firewall, or NAT, in between?", c.conn.RemoteAddr().(*net.TCPAddr).Port, c.Peer.Port())
}

// read is the server's next line; a refusal is an error.
func (c *Client) read() (message, error) {
	m, err := c.l.read()
	switch {
	case errors.Is(err, io.EOF):
		return m, errors.New("the server closed the connection")
	case err != nil:
		return m, err
	case m.Refused != "":
		return m, fmt.Errorf("the server refuses: %s", m.Refused)
	}
	return m, nil
}

// sizes of IP packets that pass almost everywhere: Ethernet, some tunnels, the least
// of IPv6.
var sizes = []int{1500, 1400, 1280}

// findMTU sends some packets of each size in both directions: the largest that comes
// is the path's.
func (c *Client) findMTU(ctx context.Context, servers int) error {
	own, err := c.deviceMTU()
	if err != nil {
		own = sizes[0]
	}
	largest := min(own, servers, sizes[0])
	t := probe.Train{Purpose: "session/mtu"}
	for _, size := range append([]int{largest}, sizes...) {
		if size <= largest && (len(t.Parts) == 0 || size < largest) {
			t.Parts = append(t.Parts, probe.Part{Count: 3, Size: size, Pause: time.Millisecond})
		}
	}
	for _, d := range probe.Directions {
		c.MTU[d] = largest
		s, err := c.exchange(ctx, d, t)
		if err != nil {
			return err
		}
		c.MTU[d] = 0
		for _, part := range s.Split() {
			if len(part.Arrived) > 0 && part.Parts[0].Size > c.MTU[d] {
				c.MTU[d] = part.Parts[0].Size
			}
		}
		if c.MTU[d] == 0 {
			return fmt.Errorf("none of %d packets came, going %s: UDP port %d does not get through", t.Count(), d, c.Peer.Port())
		}
	}
	return nil
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
	if c.broken == nil {
		c.conn.SetWriteDeadline(time.Now().Add(time.Second))
		c.l.write(message{Bye: &bye{}})
	}
	if c.flow != nil {
		c.socket.Forget(c.flow)
	}
	if c.own {
		c.socket.Close()
	}
	if c.rest != nil {
		c.rest()
	}
	return c.conn.Close()
}

// Spent is what the session has sent in a direction, in bytes of layer 2, and what its
// control connection has carried in both.
func (c *Client) Spent() (out, in, control unit.Bytes) {
	return c.data[0], c.data[1], unit.Bytes(c.control.Load())
}
