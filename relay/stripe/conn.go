package stripe

import (
	"fmt"
	"slices"
	"time"
)

// Conn is one agent's end of a connection that a session carries.
type Conn struct {
	Number  uint32
	session *Session
	state   connState

	// Sending: pending chunks were not sent, unacked were. credit is the offset up to which the receiver permits.
	pending      []*chunk
	pendingBytes int
	unacked      []*chunk
	offset       uint64 // of the next byte that is written
	credit       uint64
	closed       bool // the last chunk has been written
	queued       bool // in session.sending
	backlog      int  // bytes that it counts in session.backlog
	full         bool // Room was 0, and there was no EventRoom since
	// endless is true while the application writes more than the streams take: since Room was 0, until half of it is free.
	endless   bool
	blockedAt uint64 // credit of the latest Blocked

	// Receiving: granted is the offset up to which the other agent may send, consumed what was taken.
	in           reassembly
	window       int
	granted      uint64
	consumed     uint64
	creditQueued bool
	// grown is when the window was last changed, and grownAt what was consumed then.
	grown   time.Duration
	grownAt uint64
	// unblocked is until when Blocked does not change the window again.
	unblocked time.Duration
	told      bool // an event says that there is something to read
	paths     []PathBytes
}

type connState int

const (
	unopened connState = iota // data has come before Open
	opening                   // opened by one agent, not answered by the other
	open
	ended
)

func (s *Session) newConn(number uint32, state connState) *Conn {
	c := &Conn{Number: number, session: s, state: state, credit: initialWindow, window: initialWindow, granted: initialWindow}
	s.conns[number] = c
	return c
}

// Open opens a connection. description is for the other agent. Data can be written at once.
func (s *Session) Open(description []byte) *Conn {
	c := s.newConn(s.next, opening)
	s.next += 2
	s.control = append(s.control, Frame{Kind: Open, Conn: c.Number, Payload: description})
	return c
}

// Accept answers EventOpen.
func (c *Conn) Accept() {
	if c.state == opening {
		c.state = open
		c.session.control = append(c.session.control, Frame{Kind: Opened, Conn: c.Number})
	}
}

// Reset ends the connection at once, in both directions. reason is for the other agent.
func (c *Conn) Reset(reason string) {
	if c.state == ended {
		return
	}
	c.session.control = append(c.session.control, Frame{Kind: Reset, Conn: c.Number, Payload: []byte(reason)})
	c.end()
}

// end forgets the connection.
func (c *Conn) end() {
	s := c.session
	c.state = ended
	if c.queued {
		s.sending = slices.DeleteFunc(s.sending, func(o *Conn) bool { return o == c })
		s.backlog -= c.backlog
		c.queued, c.backlog = false, 0
	}
	s.window -= c.window - initialWindow
	c.window = initialWindow
	c.pending, c.pendingBytes, c.unacked, c.in.chunks = nil, 0, nil, nil
	delete(s.conns, c.Number)
}

// Room returns how many bytes may be written now.
func (c *Conn) Room() int {
	if c.state == ended {
		return 0
	}
	room := max(c.session.options.MaxPending-c.pendingBytes, 0)
	c.full, c.endless = c.full || room == 0, c.endless || room == 0
	return room
}

// Write takes data of at most MaxPayload bytes, which must not be changed later.
func (c *Conn) Write(data []byte) {
	if c.state == ended || c.closed || len(data) == 0 {
		return
	}
	c.add(data, false)
}

// CloseWrite ends the direction.
func (c *Conn) CloseWrite() {
	if c.state == ended || c.closed {
		return
	}
	c.closed = true
	if n := len(c.pending); n > 0 {
		c.pending[n-1].fin = true
		return
	}
	c.add(nil, true)
}

func (c *Conn) add(data []byte, fin bool) {
	c.pending = append(c.pending, &chunk{conn: c, offset: c.offset, data: data, fin: fin})
	c.offset += uint64(len(data))
	c.pendingBytes += len(data)
	c.session.queue(c)
}

// queue gives a connection a turn, or updates its backlog: the bytes of the chunks that the receiver permits.
func (s *Session) queue(c *Conn) {
	s.backlog -= c.backlog
	c.backlog = 0
	if len(c.pending) > 0 && c.permitted(c.pending[0]) {
		c.backlog = min(c.pendingBytes, int(c.credit-c.pending[0].offset))
		if !c.queued {
			c.queued = true
			s.sending = append(s.sending, c)
		}
	}
	s.backlog += c.backlog
}

func (c *Conn) permitted(k *chunk) bool { return k.offset+uint64(len(k.data)) <= c.credit }

// acked drops the acknowledged chunks at the beginning, and closes the connection if nothing is left to do.
func (s *Session) acked(c *Conn) {
	for len(c.unacked) > 0 && c.unacked[0].acked {
		pop(&c.unacked).data = nil
	}
	s.closeIfDone(c)
}

func (s *Session) closeIfDone(c *Conn) {
	if c.state == open && c.closed && len(c.pending) == 0 && len(c.unacked) == 0 && c.in.finished() {
		c.end()
		s.event(Event{Kind: EventClosed, Conn: c})
	}
}

// Read returns the next bytes in order, nil if there are none yet; end reports whether the direction has ended.
// After the caller has passed the bytes on, it calls Consumed.
func (c *Conn) Read() (data []byte, end bool) {
	data = c.in.pop()
	c.told = c.told && (data != nil || c.in.finished())
	if end = data == nil && c.in.finished(); end {
		c.session.closeIfDone(c)
	}
	return data, end
}

// Consumed tells that bytes were passed on. The receiver's window follows the rate at which that happens: it is
// doubled while a window is consumed within two of the longest round-trip times, because a chunk on the slowest
// stream arrives that much later than one on the fastest.
func (c *Conn) Consumed(bytes int, now time.Duration) {
	if c.state == ended {
		return
	}
	c.consumed += uint64(bytes)
	if c.consumed-c.grownAt >= uint64(c.window) {
		if now-c.grown < 2*c.session.longestRTT() {
			c.grow()
		}
		c.grown, c.grownAt = now, c.consumed
	}
	c.grant()
	c.session.closeIfDone(c)
}

// grow doubles the receiver's window, if the limits permit.
func (c *Conn) grow() {
	s := c.session
	if more := min(c.window, s.options.ConnWindow-c.window); more > 0 && s.window+more <= s.options.SessionWindow {
		s.window += more
		c.window += more
	}
}

// grant permits the other agent to send what the window has room for, if that is much.
func (c *Conn) grant() {
	if next := c.consumed + uint64(c.window); next-c.granted >= uint64(c.window)/4 && !c.in.ended {
		c.granted = next
		c.queueCredit()
	}
}

// peerBlocked doubles the receiver's window at most once in a round trip, because the other agent has more to send and
// the application keeps up: a stream that retransmits holds back what the others carry, and would stop them. (QUIC has
// such a frame, RFC 9000, section 19.13.)
func (c *Conn) peerBlocked(now time.Duration) {
	if now < c.unblocked || c.in.bytes-c.in.blocked() > c.window/4 {
		return
	}
	c.unblocked = now + c.session.longestRTT()
	c.grow()
	c.grant()
}

// block tells the other agent once for each credit that it is too little.
func (c *Conn) block() {
	if c.blockedAt != c.credit {
		c.blockedAt = c.credit
		c.session.control = append(c.session.control, Frame{Kind: Blocked, Conn: c.Number, Offset: c.credit})
	}
}

func (c *Conn) queueCredit() {
	if !c.creditQueued {
		c.creditQueued = true
		c.session.control = append(c.session.control, Frame{Kind: Credit, Conn: c.Number})
	}
}

// receiveConn processes a frame of a connection.
func (s *Session) receiveConn(f Frame, now time.Duration) {
	c := s.conns[f.Conn]
	if c == nil {
		if c = s.opened(f.Conn); c == nil {
			return // a frame of a connection that has ended
		}
	}
	switch f.Kind {
	case Open:
		if c.state == unopened {
			c.state = opening
			s.event(Event{Kind: EventOpen, Conn: c, Description: f.Payload})
			s.readable(c)
		}
	case Opened:
		if c.state == opening {
			c.state = open
			s.event(Event{Kind: EventOpened, Conn: c})
			s.closeIfDone(c)
		}
	case Reset:
		c.end()
		s.event(Event{Kind: EventReset, Conn: c, Reason: string(f.Payload)})
	case Credit:
		if f.Offset > c.credit {
			c.credit = f.Offset
			s.queue(c)
		}
	case Blocked:
		c.peerBlocked(now)
	case Data:
		err := error(nil)
		if f.Offset+uint64(len(f.Payload)) > c.granted {
			err = fmt.Errorf("%w: data beyond the credit", errPeer)
		} else {
			_, err = c.in.insert(f.Offset, f.Payload, f.Fin)
		}
		if err != nil {
			c.Reset(err.Error())
			s.event(Event{Kind: EventReset, Conn: c, Reason: err.Error()})
			return
		}
		s.readable(c)
	}
}

// readable tells the caller once that a connection has something to read.
func (s *Session) readable(c *Conn) {
	if !c.told && c.state != unopened && (c.in.chunks[c.in.next] != nil || c.in.finished()) {
		c.told = true
		s.event(Event{Kind: EventData, Conn: c})
	}
}

// opened returns the connection with a number that the other agent chose, nil if it has ended or if there cannot
// be one. Streams overtake each other: connections up to the number have been opened, too.
func (s *Session) opened(number uint32) *Conn {
	if number%2 == s.next%2 || number <= s.newest || number > s.newest+2*maxUnopened {
		return nil
	}
	first := s.newest + 2
	if s.newest == 0 {
		first = 1 + s.next%2 // 1 where this agent's numbers are even, 2 where they are odd
	}
	for n := first; n <= number; n += 2 {
		s.newConn(n, unopened)
	}
	s.newest = number
	return s.conns[number]
}
