package stripe

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits, chosen for Headgate.
const (
	// initialWindow is the credit of each connection from the beginning, so that small ones need no round trip.
	initialWindow = 256 << 10
	// ackFrames are after how many frames an acknowledgement is sent, and ackPart after what part of the round-trip time
	// within these limits: each timer costs a wake.
	ackFrames, ackPart    = 8, 4
	ackDelay, maxAckDelay = 2 * time.Millisecond, 8 * time.Millisecond
	// pingInterval is the interval of pings on a suspect stream.
	pingInterval = 500 * time.Millisecond
	// unknownBacklog is the backlog of a connection whose caller has more to write than MaxPending.
	unknownBacklog = 1 << 40
	// maxUnopened is how many connections may have data before their Open arrives, which another stream carries.
	maxUnopened = 1000
)

// Options configure a session.
type Options struct {
	// Dialer is true at the agent that dials the streams, and false at the other: each opens connections with
	// numbers of its own, even and odd.
	Dialer bool
	// ConnWindow is the largest credit of a connection in bytes, and with it the most that its reassembly buffer
	// holds; SessionWindow limits the credit of all connections beyond the initial one.
	ConnWindow, SessionWindow int
	// MaxPending is how many bytes of a connection may wait to be sent before Conn.Room is 0.
	MaxPending int
	// Free is called with the data of a chunk that nothing uses any longer. It may be nil, and is not called for each.
	Free func(data []byte)
}

// Session is one agent's end of the streams to another agent, and the connections that they carry. Its methods
// must not be called at the same time.
type Session struct {
	options Options
	streams map[uint32]*stream
	// order are the streams by number, so that a session does the same in each run.
	order, scratch []*stream
	choices        []candidate
	conns          map[uint32]*Conn
	// newest is the newest number of a connection that the other agent opened, and next the one that this agent
	// opens next.
	newest, next uint32
	// control are frames other than data that wait to be sent, and again are chunks of streams that ended or are
	// suspect. Both come before data.
	control []Frame
	again   []*chunk
	// sending are the connections with chunks that the receiver permits, in the order of their turns.
	sending []*Conn
	backlog int              // bytes of these chunks
	rates   map[string]*rate // of the paths, for Tick
	ticked  time.Duration    // when Tick was called last
	window  int              // credit beyond the initial one, of all connections
	events  []Event
	// idle and peerIdle count how often this agent, and the other, had nothing to send.
	idle, peerIdle uint64
}

// Event is something that the caller must act on.
type Event struct {
	Kind EventKind
	Conn *Conn
	// Description is that of Open, for EventOpen; Reason is why the connection ended, for EventReset.
	Description []byte
	Reason      string
	Stream      uint32
	Only        bool // see SelectCongestion
}

// EventKind is the kind of an event.
type EventKind int

// The kinds of events.
const (
	// EventOpen: the other agent opens a connection, which Accept or Reset answers.
	EventOpen EventKind = iota + 1
	// EventOpened: the other agent has accepted the connection.
	EventOpened
	// EventData: Read has something, or the direction has ended.
	EventData
	// EventRoom: Room was 0, and is a quarter of MaxPending now, so that the caller wakes once for several chunks.
	EventRoom
	// EventReset: the connection has ended at once, in both directions.
	EventReset
	// EventClosed: both directions have ended, and all was acknowledged.
	EventClosed
	// EventCongestion: the other agent selects the congestion control Reason for Stream.
	EventCongestion
)

// stream is a stream of the session.
type stream struct {
	number   uint32
	estimate Estimate
	writable bool
	// sent are the frames that were not acknowledged, in the order in which they were sent; acknowledged is how
	// many came before them.
	sent         []sentFrame
	acknowledged uint64
	// awaited is how many of sent must be acknowledged: acknowledgements are not by themselves, nor what was sent again.
	awaited  int
	progress time.Duration // when a frame was last acknowledged, or sent while none was on the way
	suspect  bool
	lastPing time.Duration
	// received is how many frames arrived, and reported how many of these were acknowledged. due is when an
	// acknowledgement is due, if there is something to acknowledge.
	received, reported uint64
	due                time.Duration
	dueSet             bool
	// sentBytes and receivedBytes are bytes of connections: those that were acknowledged, and those that arrived.
	sentBytes, receivedBytes uint64
	// retired streams get no more frames.
	retired bool
	path    string // see SetPath
}

type sentFrame struct {
	Frame
	chunk *chunk
	at    time.Duration
	// arrives is when the frame was estimated to arrive.
	arrives time.Duration
}

// chunk is a part of a connection's bytes, which is sent in one frame.
type chunk struct {
	conn    *Conn
	offset  uint64
	data    []byte
	fin     bool
	acked   bool
	waiting bool // in again
	copies  int  // that were neither acknowledged nor given up
	sends   int
	// last is the newest copy, and the stream that carries it.
	last   *stream
	arrive time.Duration
}

// NewSession returns a session without streams.
func NewSession(o Options) *Session {
	s := &Session{options: o, streams: map[uint32]*stream{}, conns: map[uint32]*Conn{}, rates: map[string]*rate{}, next: 1, newest: 0}
	if o.Dialer {
		s.next = 2
	}
	return s
}

// AddStream adds a stream. Both agents call it by the same number, which no stream had before.
func (s *Session) AddStream(number uint32, e Estimate) {
	st := &stream{number: number, estimate: e}
	s.streams[number] = st
	at, _ := slices.BinarySearchFunc(s.order, number, func(o *stream, n uint32) int { return cmp.Compare(o.number, n) })
	s.order = slices.Insert(s.order, at, st)
}

// RemoveStream removes a stream that ended. What was not acknowledged is sent on others.
func (s *Session) RemoveStream(number uint32) {
	st := s.streams[number]
	if st == nil {
		return
	}
	delete(s.streams, number)
	s.order = slices.DeleteFunc(s.order, func(o *stream) bool { return o == st })
	s.resend(st)
	st.sent = nil
}

// resend queues what a stream has not been acknowledged for other streams.
func (s *Session) resend(st *stream) {
	for n := range st.sent {
		f := &st.sent[n]
		switch {
		case f.chunk != nil:
			f.chunk.copies--
			if !f.chunk.acked && !f.chunk.waiting && f.chunk.conn.state != ended {
				f.chunk.waiting = true
				s.again = append(s.again, f.chunk)
			}
			f.chunk = nil // a later acknowledgement, if the stream recovers, finds nothing
		case f.Kind == Open || f.Kind == Opened || f.Kind == Reset || f.Kind == Congestion:
			s.control = append(s.control, f.Frame)
		case f.Kind == Ack:
			if o := s.streams[f.Conn]; o != nil {
				o.due, o.dueSet = 0, true
			}
		case f.Kind == Credit:
			if c := s.conns[f.Conn]; c != nil {
				c.queueCredit()
			}
		case f.Kind == Blocked:
			if c := s.conns[f.Conn]; c != nil {
				c.blockedAt = 0
			}
		}
		f.Kind = 0
	}
	st.awaited = 0
}

// Writable tells that a stream can take a frame, until Next assigns one to it.
func (s *Session) Writable(number uint32, e Estimate) {
	if st := s.streams[number]; st != nil {
		st.estimate, st.writable = e, true
	}
}

// Update replaces the estimate of a stream.
func (s *Session) Update(number uint32, e Estimate) {
	if st := s.streams[number]; st != nil {
		st.estimate = e
	}
}

// Next assigns the next frame to a stream that can take it. The caller writes the frame to the stream, and calls
// Writable when the stream can take another. ok is false if nothing can be sent now.
func (s *Session) Next(now time.Duration) (number uint32, f Frame, ok bool) {
	if st := s.first(nil); st != nil {
		if f, ok := s.nextControl(st, now); ok {
			return s.send(st, f, nil, now), f, true
		}
		if c := s.nextAgain(); c != nil {
			if st = s.first(c.last); st != nil {
				pop(&s.again)
				c.waiting = false
				return s.sendChunk(st, c, now)
			}
		}
	}
	if number, f, ok = s.nextData(now); ok {
		return number, f, true
	}
	if st := s.first(nil); st != nil && len(s.control) > 0 { // nextData has found a connection without credit
		if f, ok := s.nextControl(st, now); ok {
			return s.send(st, f, nil, now), f, true
		}
	}
	if len(s.sending) == 0 && s.first(nil) != nil {
		s.idle++
	}
	return s.probe(now)
}

// usable returns the streams that get frames, by number: those that are neither retired nor suspect, or else those that
// are not retired, or else all. The result is valid until the next call.
func (s *Session) usable() []*stream {
	for _, unusable := range []func(*stream) bool{
		func(st *stream) bool { return st.retired || st.suspect }, func(st *stream) bool { return st.retired },
	} {
		if !slices.ContainsFunc(s.order, unusable) {
			return s.order
		}
		s.scratch = s.scratch[:0]
		for _, st := range s.order {
			if !unusable(st) {
				s.scratch = append(s.scratch, st)
			}
		}
		if len(s.scratch) > 0 {
			return s.scratch
		}
	}
	return s.order
}

// first returns the stream with the shortest round-trip time of those that can take a frame, nil if there is none.
// It prefers others to avoid.
func (s *Session) first(avoid *stream) (best *stream) {
	for _, st := range s.usable() {
		better := best == nil || best == avoid || st != avoid && st.estimate.RTT < best.estimate.RTT
		if st.writable && better {
			best = st
		}
	}
	return best
}

// nextControl returns the next frame without data.
func (s *Session) nextControl(st *stream, now time.Duration) (Frame, bool) {
	if len(s.control) > 0 {
		f := pop(&s.control)
		if f.Kind == Credit {
			c := s.conns[f.Conn]
			if c == nil {
				return s.nextControl(st, now)
			}
			f.Offset, c.creditQueued = c.granted, false
		}
		return f, true
	}
	for _, o := range s.order {
		if o.dueSet && (o.received-o.reported >= ackFrames || now >= o.due) {
			o.reported, o.dueSet = o.received, false
			return Frame{Kind: Ack, Conn: o.number, Offset: o.received, Fin: len(s.sending) > 0}, true
		}
	}
	return Frame{}, false
}

// nextAgain returns the next chunk to send again, nil if there is none.
func (s *Session) nextAgain() *chunk {
	for len(s.again) > 0 {
		c := s.again[0]
		if !c.acked && c.conn.state != ended {
			return c
		}
		c.waiting = false
		pop(&s.again)
	}
	return nil
}

// nextData assigns the next chunk of the connection whose turn it is, or, if the receiver permits none, one that
// a slow stream holds back.
func (s *Session) nextData(now time.Duration) (number uint32, f Frame, ok bool) {
	all, candidates := s.candidates()
	for turn := range s.sending {
		c := s.sending[turn]
		k := c.pending[0]
		backlog := s.backlog
		c.endless = c.endless && c.pendingBytes > s.options.MaxPending/2
		if c.endless {
			backlog = unknownBacklog
		}
		n, noRoom := pick(candidates, len(k.data), backlog, int(c.credit-k.offset)-len(k.data))
		if noRoom {
			c.block()
		}
		if n < 0 {
			continue
		}
		pop(&c.pending)
		c.pendingBytes -= len(k.data)
		c.unacked = append(c.unacked, k)
		s.sending = slices.Delete(s.sending, turn, turn+1)
		s.backlog -= c.backlog
		c.backlog, c.queued = 0, false
		s.queue(c)
		if c.full && c.pendingBytes <= s.options.MaxPending*3/4 {
			c.full = false
			s.event(Event{Kind: EventRoom, Conn: c})
		}
		return s.sendChunk(all[n], k, now)
	}
	if len(s.sending) > 0 {
		return 0, Frame{}, false
	}
	return s.overtake(now)
}

func (s *Session) candidates() (all []*stream, out []candidate) {
	all = s.usable()
	s.choices = s.choices[:0]
	for _, st := range all {
		s.choices = append(s.choices, candidate{st.estimate, st.writable})
	}
	return all, s.choices
}

// overtake sends a chunk that a connection without credit waits for once more, if it would arrive much earlier than on
// the stream that carries it: that one is slower, or retransmits. The stream that takes the chunk has nothing else to send.
// (Opportunistic retransmission: C. Raiciu and others, "How Hard Can It Be? Designing and Implementing a Deployable
// Multipath TCP", NSDI 2012, section 4.2.)
func (s *Session) overtake(now time.Duration) (number uint32, f Frame, ok bool) {
	best := s.first(nil)
	if best == nil {
		return 0, Frame{}, false
	}
	var lowest *chunk // of the connection with the lowest number, so that a session does the same in each run
	for _, c := range s.conns {
		if len(c.pending) == 0 {
			continue
		}
		c.block()
		if lowest != nil && lowest.conn.Number < c.Number {
			continue
		}
		if k := c.slowest(best, now); k != nil {
			lowest = k
		}
	}
	if lowest == nil {
		return 0, Frame{}, false
	}
	return s.sendChunk(best, lowest, now)
}

// maxOvertaken is how many chunks at the beginning of a connection's unacknowledged ones may be sent again.
const maxOvertaken = 256

// slowest returns the first unacknowledged chunk that would arrive much earlier on a stream, nil if there is none.
func (c *Conn) slowest(on *stream, now time.Duration) *chunk {
	for _, k := range c.unacked[:min(len(c.unacked), maxOvertaken)] {
		if k.acked || k.waiting || k.copies != 1 || k.last == on {
			continue
		}
		left := k.arrive - now
		if left < -on.estimate.RTT { // its acknowledgement should have come: the stream retransmits
			left = k.last.estimate.RTT
		}
		if 2*on.estimate.Arrival(len(k.data)) < left {
			return k
		}
	}
	return nil
}

// probe sends a ping on a suspect stream.
func (s *Session) probe(now time.Duration) (number uint32, f Frame, ok bool) {
	for _, st := range s.order {
		if st.suspect && st.writable && now-st.lastPing >= pingInterval {
			st.lastPing = now
			f := Frame{Kind: Ping, Offset: uint64(now)}
			return s.send(st, f, nil, now), f, true
		}
	}
	return 0, Frame{}, false
}

func (s *Session) sendChunk(st *stream, k *chunk, now time.Duration) (uint32, Frame, bool) {
	f := Frame{Kind: Data, Conn: k.conn.Number, Offset: k.offset, Fin: k.fin, Payload: k.data}
	return s.send(st, f, k, now), f, true
}

func (s *Session) send(st *stream, f Frame, k *chunk, now time.Duration) uint32 {
	arrives := now + st.estimate.Arrival(len(f.Payload))
	if k != nil {
		k.copies++
		k.sends++
		k.last, k.arrive = st, arrives
	}
	if len(st.sent) == 0 {
		st.progress = now
	}
	st.sent = append(st.sent, sentFrame{f, k, now, arrives})
	if f.mustBeAcknowledged() {
		st.awaited++
	}
	st.writable = false
	return st.number
}

// Deadline returns when Next has an acknowledgement to send at the latest, false if there is none, or no stream that can
// take it.
func (s *Session) Deadline() (at time.Duration, ok bool) {
	if s.first(nil) == nil {
		return 0, false
	}
	for _, st := range s.streams {
		if st.dueSet && (!ok || st.due < at) {
			at, ok = st.due, true
		}
	}
	return at, ok
}

// SelectCongestion selects the congestion control of what the other agent sends on a stream; only forbids others while
// the stream is idle.
func (s *Session) SelectCongestion(number uint32, name string, only bool) {
	s.control = append(s.control, Frame{Kind: Congestion, Conn: number, Fin: only, Payload: []byte(name)})
}

// longestRTT returns the longest round-trip time of the streams.
func (s *Session) longestRTT() (longest time.Duration) {
	for _, st := range s.streams {
		longest = max(longest, st.estimate.RTT)
	}
	return longest
}

// Retire stops sending on a stream; what was sent is still acknowledged. It must not be the last stream.
func (s *Session) Retire(number uint32) {
	if st := s.streams[number]; st != nil {
		st.retired = true
	}
}

// Drained reports whether everything that was sent on a stream was acknowledged.
func (s *Session) Drained(number uint32) bool {
	st := s.streams[number]
	return st == nil || len(st.sent) == 0
}

// Bytes returns how many bytes of connections a stream has carried: those sent and acknowledged, and those received.
func (s *Session) Bytes(number uint32) (sent, received uint64) {
	if st := s.streams[number]; st != nil {
		return st.sentBytes, st.receivedBytes
	}
	return 0, 0
}

// Idle returns how often this agent, and the other, had nothing to send.
func (s *Session) Idle() (own, other uint64) { return s.idle, s.peerIdle }

// Suspect reports whether a stream makes no progress.
func (s *Session) Suspect(number uint32) bool {
	st := s.streams[number]
	return st != nil && st.suspect
}

// Receive processes a frame that arrived on a stream. An error means that the stream must end.
func (s *Session) Receive(number uint32, f Frame, now time.Duration) error {
	st := s.streams[number]
	if st == nil {
		return fmt.Errorf("%w: stream %d", ErrFrame, number)
	}
	st.received++
	if f.Kind != Ack {
		if !st.dueSet {
			st.due, st.dueSet = now+min(max(st.estimate.RTT/ackPart, ackDelay), maxAckDelay), true
		}
	}
	switch f.Kind {
	case Ack:
		if !f.Fin {
			s.peerIdle++
		}
		return s.acknowledge(f, now)
	case Congestion:
		s.event(Event{Kind: EventCongestion, Stream: f.Conn, Reason: string(f.Payload), Only: f.Fin})
	case Data, Open, Opened, Reset, Credit, Blocked:
		st.receivedBytes += uint64(len(f.Payload))
		s.receiveConn(f, now)
		if c := s.conns[f.Conn]; c != nil && f.Kind == Data {
			c.count(st.path, 0, len(f.Payload))
		}
	}
	return nil
}

// acknowledge processes an acknowledgement of the first frames of a stream.
func (s *Session) acknowledge(f Frame, now time.Duration) error {
	st := s.streams[f.Conn]
	if st == nil {
		return nil // it has ended meanwhile
	}
	if f.Offset > st.acknowledged+uint64(len(st.sent)) {
		return fmt.Errorf("%w: acknowledgement of %d frames, %d were sent", ErrFrame, f.Offset, st.acknowledged+uint64(len(st.sent)))
	}
	if f.Offset <= st.acknowledged {
		return nil // overtaken by a later one
	}
	n := int(f.Offset - st.acknowledged)
	for at, one := range st.sent[:n] {
		if one.mustBeAcknowledged() {
			st.awaited--
		}
		if k := one.chunk; k != nil {
			k.copies--
			k.acked = true
			// Who acknowledges what is being written, or was sent twice, must not have it reused meanwhile.
			if s.options.Free != nil && k.sends == 1 && (at < len(st.sent)-1 || st.writable) {
				s.options.Free(k.data)
				k.data = nil
			}
			st.sentBytes += uint64(len(one.Payload))
			s.rateOf(st.path).acked += len(one.Payload)
			k.conn.count(st.path, len(one.Payload), 0)
			s.acked(k.conn)
		}
	}
	st.sent = slices.Delete(st.sent, 0, n)
	st.acknowledged, st.progress, st.suspect = f.Offset, now, false
	return nil
}

// Events returns what has happened since the last call.
func (s *Session) Events() []Event {
	all := s.events
	s.events = nil
	return all
}

func (s *Session) event(e Event) { s.events = append(s.events, e) }

// Conn returns a connection by its number, nil if there is none.
func (s *Session) Conn(number uint32) *Conn { return s.conns[number] }

// Conns returns the number of connections.
func (s *Session) Conns() int { return len(s.conns) }
