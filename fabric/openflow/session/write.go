package session

import (
	"context"
	"net"
	"sync"
	"syscall"

	"headgate.dev/headgate/fabric/openflow"
)

// batch is after how many bytes changes wait until those before them are written. A thousand switches that get a program of a megabyte each would
// otherwise leave two buffers of a megabyte for each of them. With less the two goroutines of a switch wait for each other too often: on a busy
// machine a turn takes 10 ms. Buffers of more than small bytes are given up when all is written.
const batch, small = 64 << 10, 4 << 10

// outQueue is what waits to be written. Conn.mu protects it.
type outQueue struct {
	waiting []byte
	changed sync.Cond // for the writer
	room    sync.Cond // for who has more to write
	closed  bool
	writing bool    // the writer has taken what waited before
	direct  *direct // nil if the connection has no descriptor, as that of TLS
}

// direct writes to a socket without waiting.
type direct struct {
	raw syscall.RawConn
	b   []byte
	n   int
	try func(fd uintptr) bool
}

func newDirect(conn net.Conn) *direct {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = func(fd uintptr) bool {
		var err error
		if d.n, err = syscall.Write(int(fd), d.b); err != nil {
			d.n = 0 // the writer finds it again
		}
		return true
	}
	return d
}

// write returns how much of b the socket has taken.
func (d *direct) write(b []byte) int {
	d.b, d.n = b, 0
	_ = d.raw.Write(d.try)
	d.b = nil
	return d.n
}

// flush writes what waits, if that is little and the socket has room for it. The writer does the rest. Only messages whose answers somebody waits for
// are written so: others, such as frames, are more when the writer comes to them, and take one write together. The caller holds c.mu.
func (c *Conn) flush() {
	q := &c.out
	if q.direct != nil && !q.writing && !q.closed && len(q.waiting) <= small {
		q.waiting = q.waiting[:copy(q.waiting, q.waiting[q.direct.write(q.waiting):])]
	}
	if len(q.waiting) > 0 {
		q.wake()
	}
}

func (q *outQueue) wake() { q.changed.Signal() }

func (q *outQueue) close() {
	q.closed = true
	q.changed.Signal()
	q.room.Broadcast()
}

// awaitRoom waits until there is room for changes, the session has ended, or the context. The caller holds Conn.mu.
func (q *outQueue) awaitRoom(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		q.room.L.Lock()
		defer q.room.L.Unlock()
		q.room.Broadcast()
	})
	defer stop()
	for len(q.waiting) > batch && !q.closed && ctx.Err() == nil {
		q.room.Wait()
	}
}

// write writes what waits, many messages at a time, until the session ends.
func (c *Conn) write() {
	var b []byte
	for {
		c.mu.Lock()
		c.out.writing = false
		for len(c.out.waiting) == 0 && !c.out.closed {
			if len(c.applying) == 0 {
				b, c.out.waiting = unlessLarge(b), unlessLarge(c.out.waiting)
			}
			c.out.changed.Wait()
		}
		if c.out.closed {
			c.mu.Unlock()
			return
		}
		b, c.out.waiting, c.out.writing = c.out.waiting, b[:0], true
		c.out.room.Broadcast()
		c.mu.Unlock()
		if _, err := c.conn.Write(b); err != nil {
			c.end(err)
			return
		}
	}
}

// unlessLarge returns an empty buffer, or nil for a large one.
func unlessLarge(b []byte) []byte {
	if cap(b) > small {
		return nil
	}
	return b[:0]
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
