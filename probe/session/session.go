package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/train"
	"headgate.dev/headgate/unit"
)

// serving is the session that has its turn.
type serving struct {
	conn  *tls.Conn
	l     *lines
	id    uint64
	nonce uint64
	left  allowance

	// verified receives the client's UDP address, once the client has returned the nonce.
	verified chan netip.AddrPort
	socket   *train.Socket
	flow     *train.Flow
	rest     func() // allows processors to enter idle states again
	received unit.Bytes
}

// begin welcomes a client, and waits until the client has proven its UDP address. From
// then on the session reads from the connection, which watch did until then.
func (s *Server) begin(there context.Context, stopWatching func(), conn *tls.Conn, l *lines) (*serving, error) {
	g := &serving{conn: conn, l: l, id: random(), nonce: random(), verified: make(chan netip.AddrPort, 1)}
	g.left = allowance{caps: s.Caps, ends: time.Now().Add(s.Caps.Time)}
	s.mu.Lock()
	s.active = g
	s.mu.Unlock()
	conn.SetWriteDeadline(time.Now().Add(2 * handshakeTimeout))
	w := welcome{Version: Version, Session: Hex(g.id), Caps: s.Caps, Data: int(s.hellos.Local().Port())}
	if err := l.write(message{Welcome: &w}); err != nil {
		s.finish(g)
		return nil, err
	}
	var peer netip.AddrPort
	select {
	case peer = <-g.verified:
	case <-there.Done():
		s.finish(g)
		return nil, context.Cause(there)
	case <-time.After(handshakeTimeout):
		s.finish(g)
		return nil, fmt.Errorf("no UDP datagram arrived on port %d of the server within %v: allow UDP in firewalls and NAT on the path", w.Data, handshakeTimeout)
	}
	if err := g.connect(peer); err != nil {
		s.finish(g)
		return nil, err
	}
	stopWatching()
	conn.SetDeadline(g.left.ends)
	return g, l.write(message{Ready: &ready{MTU: mtu(g.socket), ObservedAddress: peer.String()}})
}

// connect opens the session's own socket. It has the server's address and port but is
// connected to this client, so that datagrams of others neither fill it nor count.
func (g *serving) connect(peer netip.AddrPort) error {
	local := g.conn.LocalAddr().(*net.TCPAddr).AddrPort()
	d := net.Dialer{Control: reuse, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(local.Addr().Unmap(), local.Port()))}
	c, err := d.Dial("udp", peer.String())
	if err != nil {
		return fmt.Errorf("cannot open UDP socket to %s: %w", peer, err)
	}
	// The client sends a Hello also later, to measure the round-trip time.
	g.socket, err = train.Open(c.(*net.UDPConn), func(on *train.Socket, h train.Datagram) {
		if h.Kind == train.Hello && h.Session == g.id {
			on.SendHeader(train.Header{Kind: train.Challenge, Session: g.id}.WithNonce(g.nonce), h.From)
		}
	})
	if err != nil {
		c.Close()
		return err
	}
	g.flow = g.socket.Join(g.id, peer)
	g.rest, err = awake.Start()
	return err
}

// finish closes the session and lets the next one start.
func (s *Server) finish(g *serving) {
	s.mu.Lock()
	s.active = nil
	s.mu.Unlock()
	if g.socket != nil {
		g.socket.Close()
	}
	if g.rest != nil {
		g.rest()
	}
}

// hello answers datagrams to the server's port, whoever sends them. The answer is no
// larger than the datagram, and only a sender that knows the session number, which was
// sent over TLS, gets one.
func (s *Server) hello(on *train.Socket, h train.Datagram) {
	s.mu.Lock()
	g := s.active
	s.mu.Unlock()
	if g == nil || h.Session != g.id {
		return
	}
	switch {
	case h.Kind == train.Hello:
		on.SendHeader(train.Header{Kind: train.Challenge, Session: g.id}.WithNonce(g.nonce), h.From)
	case h.Kind == train.Proof && h.Nonce() == g.nonce:
		select {
		case g.verified <- h.From:
		default:
		}
	}
}

// run follows the client's requests until the client sends "bye", disconnects or violates
// the protocol.
func (g *serving) run(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, g.left.ends, fmt.Errorf("session exceeded its time cap: %v", g.left.caps.Time))
	defer cancel()
	for {
		m, err := g.read(0)
		switch {
		case err != nil && !time.Now().Before(g.left.ends):
			return context.Cause(ctx)
		case err != nil:
			return err
		case m.Bye != nil:
			return nil
		case m.Train == nil:
			return errors.New("unexpected message from the client: want \"train\" or \"bye\"")
		}
		if m.Train.ToClient {
			err = g.send(ctx, m.Train)
		} else {
			err = g.receive(ctx, m.Train)
		}
		if err != nil {
			return err
		}
	}
}

// idleTimeout is how long a client may send nothing, because other clients wait for their
// turn.
const idleTimeout = 20 * time.Second

// read returns the client's next message. It times out idleTimeout after the given duration,
// and at the latest at the end of the session's time.
func (g *serving) read(after time.Duration) (message, error) {
	until := time.Now().Add(after + idleTimeout)
	if until.After(g.left.ends) {
		until = g.left.ends
	}
	g.conn.SetReadDeadline(until)
	m, err := g.l.read()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("client timed out")
	}
	return m, err
}

// receive receives a train from the client.
func (g *serving) receive(ctx context.Context, o *trainRequest) error {
	if err := o.Train.Check(); err != nil {
		return err
	}
	ends := train.Watch()
	g.flow.Begin(o.Number, o.Train.Count())
	m, err := g.read(duration(o.Train))
	if err != nil {
		return err
	}
	if m.Sent == nil || m.Sent.Number != o.Number {
		return errors.New("unexpected message from the client: want \"sent\"")
	}
	r, err := g.flow.Collect(ctx, o.Number, o.Train.Count())
	if err != nil {
		return err
	}
	g.received += o.Train.Bytes()
	a := arrived{Number: o.Number, Overflow: r.Overflow, Stolen: ends.Stolen(), Stepped: ends.Stepped()}
	for _, p := range r.Arrived {
		a.Packet, a.At = append(a.Packet, int64(p.Number)), append(a.At, p.At)
	}
	return g.l.write(message{Arrived: &a})
}

// send sends a train to the client, within the caps.
func (g *serving) send(ctx context.Context, o *trainRequest) error {
	if err := g.left.await(ctx, o.Train); err != nil {
		return err
	}
	ends := train.Watch()
	s, err := g.flow.Send(ctx, o.Number, o.Train)
	if err != nil {
		return err
	}
	return g.l.write(message{Sent: &sent{Number: o.Number, At: probe.Deltas(s.At), Late: s.Delay, Stolen: ends.Stolen()}})
}

// mtu returns the MTU of the device that leads to the peer of a connected socket, or 1500
// if the kernel returns none.
func mtu(s *train.Socket) int {
	if n, err := s.MTU(); err == nil && n > 0 {
		return n
	}
	return 1500
}
