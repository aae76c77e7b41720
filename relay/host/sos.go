package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"headgate.dev/headgate/relay"
)

// The scheme of the thesis (docs/seeds.md, "SOS Sockets" and "SOS Overhead"), for comparison: each connection has its
// own streams, a fixed number. They get its bytes in turns, in packets with a header of size and sequence number, and a
// stream that is full blocks the others. The receiver stores a fixed number of packets that are not next; then it stops
// reading the streams that have others.
const (
	sosHeader = 8
	// sosMaxBlock is the largest packet, header included.
	sosMaxBlock = 1 << 20
)

// sosConn is one agent's end of a connection of that scheme.
type sosConn struct {
	relay.SOS
	app     net.Conn
	streams []net.Conn

	mu      sync.Mutex
	changed sync.Cond
	next    uint32            // the sequence number of the next packet for the application
	stored  map[uint32][]byte // packets that have arrived
	failed  error
}

// carrySOS carries an application's connection over streams until both directions have ended.
func carrySOS(s relay.SOS, app net.Conn, streams []net.Conn) error {
	c := &sosConn{SOS: s, app: app, streams: streams, stored: map[uint32][]byte{}}
	c.changed.L = &c.mu
	var all sync.WaitGroup
	all.Go(func() { c.fail(c.send()) })
	all.Go(func() { c.fail(c.deliver()) })
	for _, stream := range streams {
		all.Go(func() { c.fail(c.receive(stream)) })
	}
	all.Wait()
	return c.failed
}

// fail ends the connection, unless err is nil.
func (c *sosConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || c.failed != nil {
		return
	}
	c.failed = err
	reset(c.app)
	closeAll(c.streams)
	c.changed.Broadcast()
}

// send sends what the application sends: a packet on each stream in turn. A packet without payload on each stream is
// the end of the direction.
func (c *sosConn) send() error {
	packet := make([]byte, c.Block)
	sequence := uint32(0)
	for {
		n, err := c.app.Read(packet[sosHeader:])
		if n > 0 {
			if err := c.write(c.streams[int(sequence)%len(c.streams)], packet[:sosHeader+n], sequence); err != nil {
				return err
			}
			sequence++
		}
		switch {
		case errors.Is(err, io.EOF):
			for _, stream := range c.streams {
				if err := c.write(stream, packet[:sosHeader], sequence); err != nil {
					return err
				}
			}
			return nil
		case err != nil:
			return err
		}
	}
}

func (c *sosConn) write(stream net.Conn, packet []byte, sequence uint32) error {
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-sosHeader))
	binary.BigEndian.PutUint32(packet[4:], sequence)
	_, err := stream.Write(packet)
	return err
}

// receive reads the packets of a stream until the end of the direction.
func (c *sosConn) receive(stream net.Conn) error {
	var header [sosHeader]byte
	for {
		if _, err := io.ReadFull(stream, header[:]); err != nil {
			return unexpectedEnd(err)
		}
		size, sequence := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:])
		if size > uint32(c.Block) {
			return fmt.Errorf("a packet of %d bytes, the maximum is %d", size, c.Block)
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(stream, payload); err != nil {
			return unexpectedEnd(err)
		}
		c.mu.Lock()
		for c.failed == nil && size > 0 && sequence != c.next && len(c.stored) >= c.Queue {
			c.changed.Wait()
		}
		c.stored[sequence] = payload
		c.changed.Broadcast()
		c.mu.Unlock()
		if size == 0 {
			return nil
		}
	}
}

// deliver passes on the packets in order.
func (c *sosConn) deliver() error {
	for {
		c.mu.Lock()
		for c.failed == nil && c.stored[c.next] == nil {
			c.changed.Wait()
		}
		payload := c.stored[c.next]
		if c.failed == nil {
			delete(c.stored, c.next)
			c.next++
			c.changed.Broadcast()
		}
		failed := c.failed
		c.mu.Unlock()
		switch {
		case failed != nil:
			return nil
		case len(payload) == 0:
			if half, ok := c.app.(interface{ CloseWrite() error }); ok {
				return half.CloseWrite()
			}
			return nil
		}
		if _, err := c.app.Write(payload); err != nil {
			return err
		}
	}
}

// closeAll closes streams; those that could not be opened are nil.
func closeAll(streams []net.Conn) {
	for _, s := range streams {
		if s != nil {
			s.Close()
		}
	}
}

// unexpectedEnd is the error of a stream that ends before its last packet.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
