package host

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

// secureConn is a TLS connection that carries frames with few system calls. crypto/tls writes each record of 16 KiB by
// itself, and reads little more than one at a time.
type secureConn struct {
	*tls.Conn
	under *gathered
	frame []byte
}

// secure returns a TLS connection over c.
func secure(c net.Conn, wrap func(net.Conn) *tls.Conn) *secureConn {
	under := &gathered{Conn: c, in: bufio.NewReaderSize(&batched{Conn: c}, readBuffer)}
	return &secureConn{Conn: wrap(under), under: under}
}

// writeFrame writes a frame with one system call. Calls must not overlap.
func (s *secureConn) writeFrame(header, payload []byte) error {
	s.frame = append(append(s.frame[:0], header...), payload...)
	s.under.gather()
	_, err := s.Write(s.frame)
	if failed := s.under.flush(); err == nil {
		err = failed
	}
	return err
}

// gathered is a connection that writes what is written between gather and flush at once.
type gathered struct {
	net.Conn
	in *bufio.Reader

	mu        sync.Mutex
	gathering bool
	out       []byte
}

func (g *gathered) Read(b []byte) (int, error) { return g.in.Read(b) }

// Write and flush hold mu while they write, so that records stay in order.
func (g *gathered) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gathering {
		g.out = append(g.out, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

func (g *gathered) gather() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering, g.out = true, g.out[:0]
}

func (g *gathered) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering = false
	_, err := g.Conn.Write(g.out)
	return err
}
