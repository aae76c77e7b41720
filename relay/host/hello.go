package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// sessionID identifies a session; the agent that dials the streams chooses it.
type sessionID [16]byte

// hello is what the dialing agent sends first on a stream: magic, version, session and the number of the stream.
const (
	magic     = "HGRL"
	version   = 2
	helloSize = len(magic) + 1 + len(sessionID{}) + 4
)

// destination is the description of a connection.
type destination struct {
	To   netip.AddrPort `json:"to"`
	From netip.AddrPort `json:"from,omitzero"` // the client's address
}

// hasSource reports whether the connection to the destination can have the client's address: a client on the entry's
// own host may have none that means anything at the exit.
func (d destination) hasSource() bool {
	from := d.From.Addr().Unmap()
	return from.IsValid() && !from.IsLoopback() && from.Is4() == d.To.Addr().Unmap().Is4()
}

// readMagic reads which kind of stream comes. What follows must come before handshakeTimeout.
func readMagic(c net.Conn) (string, error) {
	var b [len(magic)]byte
	if err := c.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return "", err
	}
	if s := string(b[:]); s == magic || s == sosMagic {
		return s, nil
	}
	return "", errors.New("the peer is no relay agent")
}

// readHello reads what follows the magic.
func readHello(c net.Conn) (id sessionID, number uint32, err error) {
	var b [helloSize - len(magic)]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return id, 0, err
	}
	if b[0] != version {
		return id, 0, fmt.Errorf("the peer has version %d of the relay protocol, this agent %d: use the same version of Headgate", b[0], version)
	}
	n := copy(id[:], b[1:])
	return id, binary.BigEndian.Uint32(b[1+n:]), c.SetReadDeadline(time.Time{})
}

func appendHello(id sessionID, number uint32) []byte {
	b := append([]byte(magic), version)
	return binary.BigEndian.AppendUint32(append(b, id[:]...), number)
}

// What the accepting agent replies to a hello: whether it knows the session.
const (
	newSession   byte = 1
	knownSession byte = 2
)
