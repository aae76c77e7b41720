package host

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// takenSet is the addresses of the connections that were taken transparently and are open. A connection between the
// same addresses comes from an exit whose route to the destination leads back to this agent: carrying it would be a
// loop.
type takenSet struct {
	mu   sync.Mutex
	open map[[2]netip.AddrPort]struct{}
}

var errLoop = errors.New("an exit's connection to the destination has come back: correct the exit's route to the destination, or leave the destination out of take")

// add adds a connection until it is closed. It is errLoop if one between the same addresses is open.
func (s *takenSet) add(c *net.TCPConn, from, to netip.AddrPort) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]netip.AddrPort{from, to}
	if _, is := s.open[key]; is {
		return nil, errLoop
	}
	if s.open == nil {
		s.open = map[[2]netip.AddrPort]struct{}{}
	}
	s.open[key] = struct{}{}
	return &takenConn{TCPConn: c, forget: sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, key)
	})}, nil
}

// takenConn is a connection of a takenSet.
type takenConn struct {
	*net.TCPConn
	forget func()
}

func (c *takenConn) Close() error {
	c.forget()
	return c.TCPConn.Close()
}
