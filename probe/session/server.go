package session

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/train"
)

// Server serves measurements to clients, one client at a time.
type Server struct {
	Auth peerauth.Credentials
	Caps Caps
	Log  *slog.Logger
	// Peers are the only servers to which this server measures for a client.
	Peers []probe.Address
	// Measure measures the path to a peer as request asks. It is a client of the peer,
	// and keeps what it sends within Caps. The server retries after an ErrBusy.
	Measure func(ctx context.Context, peer probe.Address, request json.RawMessage, say func(string)) (json.RawMessage, error)
	// Served, if set, is called after each client that had its turn.
	Served func()

	control net.Listener
	hellos  *train.Socket
	turn    chan struct{}

	mu      sync.Mutex
	waiting int
	active  *serving
}

// maxWaiting is the maximum number of waiting clients; further clients are refused.
const maxWaiting = 32

// handshakeTimeout bounds the wait for an immediate answer: a line of the handshake, a nonce.
const handshakeTimeout = 5 * time.Second

// Listen opens the TCP and the UDP port at address (host:port). Port 0 is any port, the
// same for both.
func (s *Server) Listen(ctx context.Context, address string) error {
	c, err := s.Auth.Server()
	if err != nil {
		return err
	}
	var l net.ListenConfig
	tcp, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		return listen.Remedy(err, "--listen")
	}
	l.Control = reuse
	udp, err := l.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		tcp.Close()
		return listen.Remedy(err, "--listen")
	}
	s.control, s.turn = tls.NewListener(tcp, c), make(chan struct{}, 1)
	if s.hellos, err = train.Open(udp.(*net.UDPConn), s.hello); err != nil {
		tcp.Close()
		udp.Close()
		return err
	}
	return nil
}

// reuse allows a session's socket, which is connected to its client, to have the same
// port as the socket for all other datagrams.
func reuse(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(err, set)
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() netip.AddrPort { return s.control.Addr().(*net.TCPAddr).AddrPort() }

// Serve serves clients until ctx is done.
func (s *Server) Serve(ctx context.Context) error {
	defer s.hellos.Close()
	stop := context.AfterFunc(ctx, func() { s.control.Close() })
	defer stop()
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := s.control.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			// The usual cause is a lack of file descriptors, which other sessions free.
			s.Log.Warn("cannot accept client", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		clients.Add(1)
		go func() {
			defer clients.Done()
			s.client(ctx, conn.(*tls.Conn))
		}()
	}
}

// client serves one connection from its first byte to its last.
func (s *Server) client(ctx context.Context, conn *tls.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	log := s.Log.With("client", conn.RemoteAddr().String())
	l := &lines{in: bufio.NewReader(conn), out: conn, longest: longestOrder}
	asked, err := s.admit(ctx, conn, l)
	if err != nil {
		log.Info("client rejected", "error", err)
		return
	}
	if asked != nil {
		s.measureFor(ctx, conn, l, asked, log)
		return
	}
	there, stopWatching := watch(ctx, conn, l)
	defer stopWatching()
	release, err := s.wait(there, conn, l)
	if err != nil {
		log.Info("client left the queue", "error", err)
		return
	}
	defer release()
	if s.Served != nil {
		defer s.Served()
	}
	g, err := s.begin(there, stopWatching, conn, l)
	if err == nil {
		log.Info("session started")
		err = g.run(ctx)
		s.finish(g)
		log.Info("session finished", "received", g.received, "sent", g.left.spent)
	}
	if err != nil {
		log.Info("session aborted", "error", err)
		conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		l.write(message{Refused: err.Error()})
	}
}

// admit does the handshake and reads the request: nil for a session, else a measurement
// of the path to a peer.
func (s *Server) admit(ctx context.Context, conn *tls.Conn, l *lines) (*measure, error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if s.Auth.Key != nil {
		m, err := l.read()
		if err != nil {
			return nil, err
		}
		if err := checkProof(s.Auth, conn, clientMACLabel, m.Proof); err != nil {
			l.write(message{Refused: "shared key does not match"})
			return nil, err
		}
		mac, err := s.Auth.MAC(conn, serverMACLabel)
		if err != nil {
			return nil, err
		}
		if err := l.write(message{Proof: &proof{mac}}); err != nil {
			return nil, err
		}
	}
	m, err := l.read()
	switch {
	case err != nil:
		return nil, err
	case m.Proof != nil:
		l.write(message{Refused: "server has no shared key: connect without a key, or with certificates"})
		return nil, errors.New("client has a shared key, the server has none")
	case (m.Open == nil) == (m.Measure == nil), m.Open != nil && m.Open.Version != Version, m.Measure != nil && m.Measure.Version != Version:
		l.write(message{Refused: fmt.Sprintf("protocol version is not supported: the server uses version %d", Version)})
		return nil, errors.New("client uses another protocol version")
	}
	return m.Measure, nil
}

// firstWaitDelay is the delay of the first "wait" message to a client.
const firstWaitDelay = 250 * time.Millisecond

// wait waits for the client's turn, and sends "wait" each second. A client that has
// disconnected leaves the queue, and a client without patience can decide to leave.
func (s *Server) wait(ctx context.Context, conn *tls.Conn, l *lines) (release func(), err error) {
	s.mu.Lock()
	if s.waiting >= maxWaiting {
		s.mu.Unlock()
		l.write(message{Refused: fmt.Sprintf("queue of the server is full: %d clients are waiting", maxWaiting)})
		return nil, errors.New("queue is full")
	}
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	for pause := firstWaitDelay; ; pause = time.Second {
		select {
		case s.turn <- struct{}{}:
			return func() { <-s.turn }, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		s.mu.Lock()
		before := s.waiting
		s.mu.Unlock()
		conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		if err := l.write(message{Wait: &wait{before}}); err != nil {
			return nil, err
		}
	}
}

// random returns a number that an attacker cannot guess.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}
