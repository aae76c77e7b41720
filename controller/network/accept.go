package network

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/openflow/session"
)

// acceptRetry is after what time connections are accepted again when the system refused: there are no file descriptors. The value
// is chosen for Headgate.
const acceptRetry = 100 * time.Millisecond

// accept accepts connections of a listener until it is closed. at is zero for the plain listener.
func (s *Switches) accept(ctx context.Context, l net.Listener, at fabric.Listener) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			slog.Warn("cannot accept switches, trying again", "error", err)
			time.Sleep(acceptRetry)
			continue
		case !take(s.open):
			slog.Warn("too many switches are connected, refusing one", "switch", conn.RemoteAddr(), "most", maxSwitches)
			conn.Close()
			continue
		}
		serving.Go(func() {
			defer func() { <-s.open }()
			s.serve(ctx, conn, at)
		})
	}
}

var errHandshakes = fmt.Errorf("%d other peers have not completed their handshakes: it can try again", maxHandshakes)

// handshake makes a connection the channel of a switch that may connect.
func (s *Switches) handshake(ctx context.Context, conn net.Conn, withTLS bool) (*session.Conn, error) {
	select {
	case s.handshakes <- struct{}{}:
	case <-time.After(handshakeTimeout):
		return nil, errHandshakes
	}
	defer func() { <-s.handshakes }()
	var certified []string
	if withTLS {
		var err error
		if conn, certified, err = s.certified(ctx, conn); err != nil {
			return nil, fmt.Errorf("no certificate of a switch: %w", err)
		}
	}
	o := live.SessionOptions()
	o.Handle = s.handle
	c, err := session.Open(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	if id := fabric.DPID(c.DatapathID()); withTLS && !slices.Contains(certified, id.String()) {
		err = fmt.Errorf("switch %v has a certificate of switch %s: give it its own (\"headgate network certificate %[1]v\")", id, strings.Join(certified, " and "))
	} else {
		err = s.accepts(id)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// certified returns the connection after the handshake of TLS, and the datapath ids of the switches that the peer has a certificate
// of: bridges of one Open vSwitch share one.
func (s *Switches) certified(ctx context.Context, conn net.Conn) (net.Conn, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	c := tls.Server(conn, s.options.TLS)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, nil, cmp.Or(ctx.Err(), err)
	}
	return c, c.ConnectionState().PeerCertificates[0].DNSNames, nil
}

// accepts returns why a switch may not connect, nil if it may.
func (s *Switches) accepts(id fabric.DPID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Admit(id)
}

// refusal returns why the configuration does not have the switch of a channel, or the listener to which it connected, nil if it has
// both. s.mu must be held.
func (s *Switches) refusal(c *session.Conn, at fabric.Listener) error {
	if why := s.config.Admit(fabric.DPID(c.DatapathID())); why != nil {
		return why
	}
	if plain := at == (fabric.Listener{}); plain || s.config != nil && slices.Contains(s.config.Listen, at) {
		return nil
	}
	return fmt.Errorf("it is connected to the listener %v, which is no longer in the configuration of the network: point it to one that is", at.Address)
}

func (s *Switches) unregister(c *session.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.channels, c)
}

// refuse makes an event of a peer that is refused, or counts one that tries again.
func (s *Switches) refuse(peer net.Addr, err error) {
	now := time.Now()
	// The port of the peer is another one at each attempt.
	key := hostOf(peer) + " " + strings.ReplaceAll(err.Error(), peer.String(), "")
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	if s.events.repeat(key, now) || !s.refusals.take(now) {
		return
	}
	text := fmt.Sprintf("refused %v: %v", peer, err)
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("refused %v: it did not complete the handshake within %v", peer, handshakeTimeout)
	}
	s.events.addOf(key, fabric.Event{Time: now, Kind: fabric.SwitchRefused, Text: text})
}

// hostOf returns an address without its port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// maxRefusals is how many different refusals have an event in a minute: others would be pushed out of the list. The value is chosen for
// Headgate.
const maxRefusals = 20

// refusals bound the events of peers that are refused. The zero value has none.
type refusals struct {
	mu    sync.Mutex
	began time.Time // a minute
	count int       // of it
}

// take reports whether a refusal can have an event. r.mu must be held.
func (r *refusals) take(now time.Time) bool {
	if now.Sub(r.began) >= time.Minute {
		r.began, r.count = now, 0
	}
	r.count++
	return r.count <= maxRefusals
}
