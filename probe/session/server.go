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

	"headgate/probe"
	"headgate/probe/train"
)

// Server measures with clients, one at a time.
type Server struct {
	Auth Auth
	Caps Caps
	Log  *slog.Logger
	// Peers are those to which this server measures when a client asks for it; nobody
	// else.
	Peers []probe.Address
	// Measure does so: it measures what request says, is this server's own client
	// there, and keeps what it sends within Caps. If it returns an ErrBusy it is tried
	// again.
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

// Most clients wait at a time: others are turned away.
const mostWaiting = 32

// Patience with what should come at once: a line of the handshake, a nonce.
const patience = 5 * time.Second

// Listen opens both ports at address (host:port; port 0 is any, the same for both).
func (s *Server) Listen(ctx context.Context, address string) error {
	c, err := s.Auth.server()
	if err != nil {
		return err
	}
	var l net.ListenConfig
	tcp, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	l.Control = reuse
	udp, err := l.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		tcp.Close()
		return err
	}
	s.control, s.turn = tls.NewListener(tcp, c), make(chan struct{}, 1)
	if s.hellos, err = train.Open(udp.(*net.UDPConn), s.hello); err != nil {
		tcp.Close()
		udp.Close()
		return err
	}
	return nil
}

// reuse lets a session's socket, which is connected to its client, have the same
// port as the one to which all others speak.
func reuse(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(err, set)
}

// Addr is where it listens.
func (s *Server) Addr() netip.AddrPort { return s.control.Addr().(*net.TCPAddr).AddrPort() }

// Serve answers clients until ctx is done.
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
			// Out of descriptors, most likely: others end.
			s.Log.Warn("a client could not be accepted", "error", err)
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

// client serves one, from its first byte to its last.
func (s *Server) client(ctx context.Context, conn *tls.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	log := s.Log.With("client", conn.RemoteAddr().String())
	l := &lines{in: bufio.NewReader(conn), out: conn, longest: longestOrder}
	asked, err := s.admit(ctx, conn, l)
	if err != nil {
		log.Info("a client was not admitted", "error", err)
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
		log.Info("a client did not wait", "error", err)
		return
	}
	defer release()
	if s.Served != nil {
		defer s.Served()
	}
	g, err := s.begin(there, stopWatching, conn, l)
	if err == nil {
		log.Info("a client measures")
		err = g.run(ctx)
		s.finish(g)
		log.Info("a client has measured", "received", g.received, "sent", g.left.spent)
	}
	if err != nil {
		log.Info("a session ended early", "error", err)
		conn.SetWriteDeadline(time.Now().Add(patience))
		l.write(message{Refused: err.Error()})
	}
}

// admit is the handshake up to what the client wants: a session, or, if it is not
// nil, a measurement of the path to another server.
func (s *Server) admit(ctx context.Context, conn *tls.Conn, l *lines) (*measure, error) {
	conn.SetDeadline(time.Now().Add(patience))
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if s.Auth.Key != nil {
		m, err := l.read()
		if err != nil {
			return nil, err
		}
		if err := s.Auth.check(conn, byClient, m.Proof); err != nil {
			l.write(message{Refused: "the key is another"})
			return nil, err
		}
		mac, err := s.Auth.mac(conn, byServer)
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
		l.write(message{Refused: "this server has no key: it is open to all, or wants certificates"})
		return nil, errors.New("it has a key, and this server none")
	case (m.Open == nil) == (m.Measure == nil), m.Open != nil && m.Open.Version != Version, m.Measure != nil && m.Measure.Version != Version:
		l.write(message{Refused: fmt.Sprintf("this server speaks version %d of the protocol", Version)})
		return nil, errors.New("it speaks another version")
	}
	return m.Measure, nil
}

// firstWord is after how long a client hears that it has to wait.
const firstWord = 250 * time.Millisecond

// wait gives the client its turn. It says each second that it waits: who has gone
// leaves the queue, and who has no patience can tell.
func (s *Server) wait(ctx context.Context, conn *tls.Conn, l *lines) (release func(), err error) {
	s.mu.Lock()
	if s.waiting >= mostWaiting {
		s.mu.Unlock()
		l.write(message{Refused: fmt.Sprintf("%d clients wait already", mostWaiting)})
		return nil, errors.New("too many wait")
	}
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	for pause := firstWord; ; pause = time.Second {
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
		conn.SetWriteDeadline(time.Now().Add(patience))
		if err := l.write(message{Wait: &wait{before}}); err != nil {
			return nil, err
		}
	}
}

// random is a number that nobody guesses.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}
