package inmemory

import (
	"net"

	"headgate.dev/headgate/fabric/openflow"
)

// Splitter divides a stream of OpenFlow into messages, whatever the parts in which it comes.
type Splitter struct{ rest []byte }

// Add adds bytes, and calls on with each whole message, which is valid until it returns. A stream that is no OpenFlow is left
// alone from there on.
func (s *Splitter) Add(b []byte, on func(message []byte)) {
	s.rest = append(s.rest, b...)
	at := 0
	for {
		left := s.rest[at:]
		if len(left) < openflow.HeaderLen {
			break
		}
		n, err := openflow.Length(left)
		if err != nil || n > len(left) {
			break
		}
		on(left[:n])
		at += n
	}
	s.rest = append(s.rest[:0], s.rest[at:]...)
}

// tapped is a switch's connection to a controller, of which each message from the controller is seen.
type tapped struct {
	net.Conn
	split Splitter
	on    func(message []byte)
}

// Read implements net.Conn.
func (t *tapped) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n > 0 {
		t.split.Add(b[:n], t.on)
	}
	return n, err
}
