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

	"headgate/internal/awake"
	"headgate/probe"
	"headgate/probe/train"
	"headgate/unit"
)

// serving is the session that has its turn.
type serving struct {
	conn  *tls.Conn
	l     *lines
	id    uint64
	nonce uint64
	left  allowance

	// The client, once it has returned the nonce.
	proven   chan netip.AddrPort
	socket   *train.Socket
	flow     *train.Flow
	rest     func() // lets the processors halt again
	received unit.Bytes
}

// begin welcomes a client, and waits until it has shown where its UDP comes from.
// From then on the client is listened to, no longer watched.
func (s *Server) begin(there context.Context, stopWatching func(), conn *tls.Conn, l *lines) (*serving, error) {
	g := &serving{conn: conn, l: l, id: random(), nonce: random(), proven: make(chan netip.AddrPort, 1)}
	g.left = allowance{caps: s.Caps, ends: time.Now().Add(s.Caps.Time)}
	s.mu.Lock()
	s.active = g
	s.mu.Unlock()
	conn.SetWriteDeadline(time.Now().Add(2 * patience))
	w := welcome{Version: Version, Session: Hex(g.id), Caps: s.Caps, Data: int(s.hellos.Local().Port())}
	if err := l.write(message{Welcome: &w}); err != nil {
		s.finish(g)
		return nil, err
	}
	var peer netip.AddrPort
	select {
	case peer = <-g.proven:
	case <-there.Done():
		s.finish(g)
		return nil, context.Cause(there)
	case <-time.After(patience):
		s.finish(g)
		return nil, fmt.Errorf("no UDP datagram of yours has come to port %d within %v: a firewall, or NAT, in between?", w.Data, patience)
	}
	if err := g.connect(peer); err != nil {
		s.finish(g)
		return nil, err
	}
	stopWatching()
	conn.SetDeadline(g.left.ends)
	return g, l.write(message{Ready: &ready{MTU: mtu(g.socket), Seen: peer.String()}})
}

// connect opens the session's own socket: the same port and address, but for this
// client alone, so that others' datagrams neither fill it nor count in it.
func (g *serving) connect(peer netip.AddrPort) error {
	local := g.conn.LocalAddr().(*net.TCPAddr).AddrPort()
	d := net.Dialer{Control: reuse, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(local.Addr().Unmap(), local.Port()))}
	c, err := d.Dial("udp", peer.String())
	if err != nil {
		return fmt.Errorf("UDP to %s: %w", peer, err)
	}
	// Round trips are asked for by a Hello later on, too.
	g.socket, err = train.Open(c.(*net.UDPConn), func(on *train.Socket, h train.Heard) {
		if h.Kind == train.Hello && h.Session == g.id {
			on.Tell(train.Header{Kind: train.Challenge, Session: g.id}.WithNonce(g.nonce), h.From)
		}
	})
	if err != nil {
		c.Close()
		return err
	}
	g.flow = g.socket.Join(g.id, peer)
	g.rest, err = awake.Keep()
	return err
}

// finish makes room for the next session.
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

// hello answers what comes to the port from anyone. It sends no more than it got,
// and only to who knows the session's number, which went over TLS.
func (s *Server) hello(on *train.Socket, h train.Heard) {
	s.mu.Lock()
	g := s.active
	s.mu.Unlock()
	if g == nil || h.Session != g.id {
		return
	}
	switch {
	case h.Kind == train.Hello:
		on.Tell(train.Header{Kind: train.Challenge, Session: g.id}.WithNonce(g.nonce), h.From)
	case h.Kind == train.Proof && h.Nonce() == g.nonce:
		select {
		case g.proven <- h.From:
		default:
		}
	}
}

// run obeys the client until it says bye, goes away, or does what it must not.
func (g *serving) run(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, g.left.ends, fmt.Errorf("the session's %v are over", g.left.caps.Time))
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
			return errors.New("a train was due, or an end")
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

// silence is how long a client may say nothing: others wait for their turn.
const silence = 20 * time.Second

// read is the client's next line, which comes after no more than some time and
// silence.
func (g *serving) read(after time.Duration) (message, error) {
	until := time.Now().Add(after + silence)
	if until.After(g.left.ends) {
		until = g.left.ends
	}
	g.conn.SetReadDeadline(until)
	m, err := g.l.read()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("you were silent for too long")
	}
	return m, err
}

// receive takes in a train from the client.
func (g *serving) receive(ctx context.Context, o *order) error {
	if err := o.Train.Check(); err != nil {
		return err
	}
	ends := train.Watch()
	g.flow.Expect(o.Number, o.Train.Count())
	m, err := g.read(duration(o.Train))
	if err != nil {
		return err
	}
	if m.Sent == nil || m.Sent.Number != o.Number {
		return errors.New("the end of a train was due")
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
func (g *serving) send(ctx context.Context, o *order) error {
	if err := g.left.await(ctx, o.Train); err != nil {
		return err
	}
	ends := train.Watch()
	s, err := g.flow.Send(ctx, o.Number, o.Train)
	if err != nil {
		return err
	}
	return g.l.write(message{Sent: &sent{Number: o.Number, At: probe.Deltas(s.At), Late: s.Late, Stolen: ends.Stolen()}})
}

// mtu of the device that leads to the peer of a connected socket, 1500 if the kernel
// does not say.
func mtu(s *train.Socket) int {
	if n, err := s.MTU(); err == nil && n > 0 {
		return n
	}
	return 1500
}
