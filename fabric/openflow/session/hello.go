package session

import (
	"bufio"
	"fmt"
	"io"

	"headgate.dev/headgate/fabric/openflow"
)

// readBuffer is what is read at once: a hundred packet-ins. Longer messages, parts of statistics mostly, have their own.
const readBuffer = 16 << 10

// The first bytes of a client that speaks TLS: the type of a record, and the major version (RFC 8446, section 5.1).
const tlsHandshake, tlsMajor = 22, 3

// hello negotiates the version (section 6.3.1), and returns the reader of what follows.
func (c *Conn) hello() (*bufio.Reader, error) {
	ours := openflow.NewHello(openflow.Version)
	text, err := openflow.Append(nil, 0, ours)
	if err != nil {
		return nil, err
	}
	// A peer that reads nothing, because it also writes first into a connection without a buffer, must not stop both.
	written := make(chan error, 1)
	go func() {
		_, err := c.conn.Write(text)
		written <- err
	}()
	r := bufio.NewReaderSize(c.conn, readBuffer)
	message, err := readHello(r)
	if err != nil {
		c.conn.Close()
		<-written
		return nil, err
	}
	if err := <-written; err != nil {
		return nil, err
	}
	xid, m, err := openflow.Decode(message)
	if err != nil {
		return nil, err
	}
	if _, err = openflow.Negotiate(ours, m.(*openflow.Hello)); err != nil {
		err = fmt.Errorf("%w: enable OpenFlow 1.3 (ovs-vsctl set bridge NAME protocols=OpenFlow13)", err)
		refusal, _ := openflow.Append(nil, xid, &openflow.Error{Kind: openflow.ErrHelloFailed, Code: uint16(openflow.HelloIncompatible), Data: []byte(err.Error())})
		_, _ = c.conn.Write(refusal)
		return nil, err
	}
	return r, nil
}

// readHello reads the bytes of a hello.
func readHello(r *bufio.Reader) ([]byte, error) {
	header, err := r.Peek(openflow.HeaderLen)
	if err != nil {
		return nil, fmt.Errorf("no hello: %w", err)
	}
	if header[0] == tlsHandshake && header[1] == tlsMajor {
		return nil, fmt.Errorf("no hello: %w", ErrTLS)
	}
	if t := openflow.Type(header[1]); t != openflow.TypeHello { // the length of another protocol is no length
		return nil, fmt.Errorf("no hello: it began with %q: is it an OpenFlow switch?", header)
	}
	b, err := readMessage(r)
	if err != nil {
		return nil, fmt.Errorf("no hello: %w", err)
	}
	return b, nil
}

// readMessage reads the bytes of one message. They are valid until r is used again.
func readMessage(r *bufio.Reader) ([]byte, error) {
	header, err := r.Peek(openflow.HeaderLen)
	if err != nil {
		if len(header) > 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n, err := openflow.Length(header)
	if err != nil {
		return nil, err
	}
	if n > r.Size() {
		b := make([]byte, n)
		_, err = io.ReadFull(r, b)
		return b, err
	}
	b, err := r.Peek(n)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	_, _ = r.Discard(n) // they are in the buffer
	return b, nil
}
