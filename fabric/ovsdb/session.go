package ovsdb

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// maxMessage bounds a message of the server, in bytes. The state of a bridge with 1,000 ports has 0.44 MB
	// (BenchmarkSnapshot), so that 64 MiB hold the 65,279 ports that a bridge can have.
	maxMessage = 64 << 20

	// probeInterval is the time without anything received after which the session sends an echo, and the time for its
	// reply. It is the default of ovsdb-server (ovs-vswitchd.conf.db(5), inactivity_probe of Manager). A write that
	// takes longer ends the session as well.
	probeInterval = 5 * time.Second
)

// errClosed is the end of a session by Close.
var errClosed = errors.New("the session is closed")

// Session is a connection to an OVSDB server. It answers the server's echo requests, and ends if the server does not
// answer its own (RFC 7047, section 4.1.11). All methods may be called concurrently. After the end of a session
// all of them fail: Dial again.
type Session struct {
	address string
	conn    net.Conn
	in      *stream

	writing sync.Mutex // held while a message is written

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]chan<- message // a nil channel: the caller has left, or it is an echo
	err     error                     // why the session ended
	schema  schema                    // nil until it is read

	done       chan struct{} // closed when err is set
	goroutines sync.WaitGroup
}

// Dial connects to an OVSDB server. The address is unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT, as in ovsdb(7). config
// is used for ssl only: it must have a certificate if the server checks them, as Open vSwitch does unless it is
// configured otherwise, and an authority for the server's: see TLS. ctx is for the connection only, not for the session.
func Dial(ctx context.Context, address string, config *tls.Config) (*Session, error) {
	conn, err := connect(ctx, address, config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the OVSDB server %s: %w", address, err)
	}
	return newSession(conn, address, maxMessage), nil
}

// newSession starts a session on a connection. A message of the server may have limit bytes.
func newSession(conn net.Conn, address string, limit int64) *Session {
	s := &Session{
		address: address, conn: conn, in: newStream(conn, limit),
		pending: map[uint64]chan<- message{}, done: make(chan struct{}),
	}
	s.goroutines.Go(s.read)
	s.goroutines.Go(s.probe)
	return s
}

// Close ends the session. Calls that wait for a reply fail.
func (s *Session) Close() error {
	s.end(errClosed)
	s.goroutines.Wait()
	return nil
}

// end ends the session for a reason; the first reason counts.
func (s *Session) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = reason
	s.conn.Close() // the reading and writing of others fail, and with what is in s.err
	close(s.done)
}

// call sends a request and decodes the result of its response into result, unless result is nil. An error that the
// server reports is a *serverError. If ctx ends first, a transaction is cancelled (RFC 7047, section 4.1.4).
func (s *Session) call(ctx context.Context, method string, result any, params ...any) error {
	reply, err := s.roundTrip(ctx, method, params)
	if err == nil && !isNull(reply.Error) {
		err = decodeError("", reply.Error)
	}
	if err == nil && result != nil {
		if isNull(reply.Result) {
			err = errors.New("the server sent no result")
		} else if err = json.Unmarshal(reply.Result, result); err != nil {
			err = fmt.Errorf("the server sent a result of another form: %w", err)
		}
	}
	return s.name(method, err)
}

// name adds the address and the method to an error.
func (s *Session) name(method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot call %s of the OVSDB server %s: %w", method, s.address, err)
}

func (s *Session) roundTrip(ctx context.Context, method string, params []any) (message, error) {
	if err := ctx.Err(); err != nil {
		return message{}, err
	}
	reply := make(chan message, 1)
	id, err := s.send(method, params, reply)
	if err != nil {
		return message{}, err
	}
	select {
	case m := <-reply:
		return m, nil
	case <-s.done:
		select {
		case m := <-reply: // it came before the end
			return m, nil
		default:
			return message{}, s.err
		}
	case <-ctx.Done():
		s.mu.Lock()
		if _, waits := s.pending[id]; waits {
			s.pending[id] = nil
		}
		s.mu.Unlock()
		if method == "transact" {
			_ = s.write(request{Method: "cancel", Params: []any{id}}) // an error ends the session
		}
		return message{}, ctx.Err()
	}
}

// send sends a request with a new id, whose response goes to reply.
func (s *Session) send(method string, params []any, reply chan<- message) (id uint64, err error) {
	if params == nil {
		params = []any{}
	}
	s.mu.Lock()
	s.lastID++
	id = s.lastID
	s.pending[id] = reply
	s.mu.Unlock()
	return id, s.write(request{Method: method, Params: params, ID: id})
}

// write writes one message. A write that fails may have written a part, so it ends the session.
func (s *Session) write(m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err = s.conn.SetWriteDeadline(time.Now().Add(probeInterval)); err == nil {
		_, err = s.conn.Write(text)
	}
	if err == nil {
		return nil
	}
	s.end(fmt.Errorf("cannot write to the server: %w", err))
	<-s.done
	return s.err // of the reader, if the server closed the connection
}

// read reads messages until the session ends.
func (s *Session) read() {
	for {
		m, err := s.in.next()
		if err == nil {
			err = s.take(m)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// take handles a message of the server.
func (s *Session) take(m message) error {
	switch {
	case m.Method == "echo" && !isNull(m.ID):
		return s.write(response{Result: m.Params, ID: m.ID})
	case m.Method != "" && !isNull(m.ID):
		return s.write(response{Error: "unknown method", ID: m.ID})
	case m.Method != "": // a notification, such as locked (RFC 7047, section 4.1.9)
		return nil
	}
	id, err := m.id()
	if err != nil {
		return err
	}
	s.mu.Lock()
	reply, sent := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if !sent {
		return fmt.Errorf("the server answered request %d, which was not sent or has been answered", id)
	}
	if reply != nil {
		reply <- m
	}
	return nil
}

// probe sends an echo whenever nothing was received for an interval, and ends the session if nothing was received for
// another one.
func (s *Session) probe() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	last, probing := uint64(0), false
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		received := s.in.received.Load()
		switch {
		case received != last:
			last, probing = received, false
		case probing:
			s.end(fmt.Errorf("the server did not answer an echo within %v", probeInterval))
			return
		default:
			probing = true
			_, _ = s.send("echo", nil, nil) // an error ends the session
		}
	}
}
