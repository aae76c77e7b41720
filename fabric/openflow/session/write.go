package session

import (
	"sync"

	"headgate.dev/headgate/fabric/openflow"
)

// outQueue is what waits to be written. Conn.mu protects it.
type outQueue struct {
	waiting []byte
	changed sync.Cond
	closed  bool
}

func (q *outQueue) wake() { q.changed.Signal() }

func (q *outQueue) close() {
	q.closed = true
	q.changed.Signal()
}

// write writes what waits, many messages at a time, until the session ends.
func (c *Conn) write() {
	var b []byte
	for {
		c.mu.Lock()
		for len(c.out.waiting) == 0 && !c.out.closed {
			c.out.changed.Wait()
		}
		if c.out.closed {
			c.mu.Unlock()
			return
		}
		b, c.out.waiting = c.out.waiting, b[:0]
		c.mu.Unlock()
		if _, err := c.conn.Write(b); err != nil {
			c.end(err)
			return
		}
	}
}

// reply answers a request of the switch.
func (c *Conn) reply(xid uint32, m openflow.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil || len(c.out.waiting) > maxQueued { // who asks without reading must not fill the queue
		return
	}
	if b, err := openflow.Append(c.out.waiting, xid, m); err == nil {
		c.out.waiting = b
		c.counters.sent(m.Type())
		c.out.wake()
	}
}
