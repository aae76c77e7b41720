package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"headgate.dev/headgate/fabric/openflow"
)

// read processes what the switch sends, until the connection ends.
func (c *Conn) read(r *bufio.Reader) {
	for malformed := 0; ; {
		b, err := readMessage(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the switch closed the connection")
			}
			c.end(err)
			return
		}
		c.alive.heard()
		xid, m, unknown, err := openflow.DecodeInto(b, c.into(b))
		if err != nil {
			malformed++
			c.counters.malformed.Add(1)
			if c.options.Malformed != nil {
				c.options.Malformed(c, err)
			}
			c.fail(binary.BigEndian.Uint32(b[4:]), err)
			if malformed == maxMalformed {
				c.end(fmt.Errorf("the switch sent %d malformed messages, the last: %w", malformed, err))
				return
			}
			continue
		}
		c.counters.received(m.Type())
		c.counters.unknown.Add(uint64(unknown))
		c.alive.process(func() { c.receive(xid, m, len(b)) })
	}
}

// into returns in whose memory a message is decoded, nil if it is to have its own. Later parts of a reply have their own.
func (c *Conn) into(message []byte) (body openflow.ReplyBody) {
	if openflow.Type(message[1]) != openflow.TypeMultipartReply {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[binary.BigEndian.Uint32(message[4:])]; p != nil {
		body, p.into = p.into, nil
	}
	return body
}

// fail ends the request of a reply that cannot be decoded.
func (c *Conn) fail(xid uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[xid]; p != nil {
		p.fail(err)
		c.drop(xid)
	}
}

// receive processes a message of a length in bytes.
func (c *Conn) receive(xid uint32, m openflow.Message, size int) {
	switch m := m.(type) {
	case *openflow.EchoRequest:
		c.reply(xid, &openflow.EchoReply{Data: m.Data})
		return
	case *openflow.EchoReply:
		c.answer(xid, m) // those to watch have no request that waits
		return
	case *openflow.Hello:
		return
	case *openflow.PortStatus:
		c.changePort(m)
	case *openflow.Error:
		if c.refuse(xid, m) {
			return
		}
	case *openflow.MultipartReply:
		c.part(xid, m, size)
		return
	case *openflow.PacketIn, *openflow.FlowRemoved: // they answer nothing, whatever their xid is
	default:
		if c.answer(xid, m) {
			return
		}
	}
	if c.options.Handle != nil {
		c.options.Handle(c, m)
	}
}

// answer passes on a reply, and reports whether a request waits for it.
func (c *Conn) answer(xid uint32, m openflow.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[xid]
	if p == nil {
		return false
	}
	delete(c.pending, xid)
	p.done(answer{message: m})
	return true
}

// part joins a part of a reply to those before, and passes on the whole.
func (c *Conn) part(xid uint32, m *openflow.MultipartReply, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[xid]
	if p == nil {
		return // it was given up
	}
	whole, err := c.parts.Add(xid, m, size)
	switch {
	case err != nil:
		p.fail(err)
	case whole != nil:
		if ports, ok := whole.Body.(*openflow.PortDescReply); ok {
			c.setPorts(ports.Ports)
		}
		p.done(answer{message: whole})
	default:
		return
	}
	delete(c.pending, xid)
}

// refuse passes on an error, and reports whether a request or a change caused it.
func (c *Conn) refuse(xid uint32, e *openflow.Error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.applying {
		if n, ok := l.number(xid); ok {
			l.refused = append(l.refused, &Refused{l.sent[n], e})
			return true
		}
	}
	p := c.pending[xid]
	if p == nil {
		return false
	}
	delete(c.pending, xid)
	p.fail(e)
	return true
}
