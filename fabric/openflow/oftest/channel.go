package oftest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// channel is the switch's end of a connection to a controller (section 6). The lock of the switch protects it; out has
// its own.
type channel struct {
	s     *Switch
	conn  net.Conn // nil for messages of a test
	role  openflow.ControllerRole
	async openflow.Async
	miss  uint16 // miss_send_len

	out     outbox
	heard   time.Time
	asked   bool // an echo request was sent since heard
	probe   *event
	arrived bool // its hello; only the reader changes it
	ended   error
}

// outbox is the messages that are to be written.
type outbox struct {
	mu        sync.Mutex
	waiting   []byte
	packetIns int           // of them
	changed   chan struct{} // has room for one: something waits, or no longer
	drained   chan struct{} // has room for one
}

// Constants of channels.
const (
	// maxPacketIns is how many packet-ins wait for a controller; later ones are dropped (Open vSwitch,
	// ofproto/connmgr.c).
	maxPacketIns = 100
	// maxWaiting is how many bytes of replies wait until no further request is read.
	maxWaiting = 1 << 20
	// maxOut is how many bytes wait until a controller that does not read is disconnected.
	maxOut = 64 << 20
	// defaultMiss is the miss_send_len at the begin (OFP_DEFAULT_MISS_SEND_LEN).
	defaultMiss = 128
)

// Connect starts Serve.
func (s *Switch) Connect(conn net.Conn) {
	go func() { _ = s.Serve(conn) }()
}

// Dial keeps a channel to a controller until ctx ends: dial opens a connection, and is called again a time after it has
// failed or the connection has ended. The time begins at 1 s and doubles up to backoff, as Open vSwitch has it; 0 is 8 s.
func (s *Switch) Dial(ctx context.Context, backoff time.Duration, dial func(context.Context) (net.Conn, error)) {
	longest := cmp.Or(backoff, 8*time.Second)
	wait := min(time.Second, longest)
	for ctx.Err() == nil {
		if conn, err := dial(ctx); err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			began := time.Now()
			_ = s.Serve(conn)
			stop()
			if time.Since(began) > wait {
				wait = min(time.Second, longest)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		wait = min(2*wait, longest)
	}
}

// Serve is the switch's end of a channel to a controller. It returns when the connection has ended, with the reason.
func (s *Switch) Serve(conn net.Conn) error {
	c := &channel{s: s, conn: conn, role: openflow.RoleEqual, async: defaultAsync(), miss: defaultMiss}
	c.out.changed, c.out.drained = make(chan struct{}, 1), make(chan struct{}, 1)
	s.lock()
	off := s.off
	c.heard = time.Now()
	c.send(0, openflow.NewHello(openflow.Version))
	c.watch()
	s.unlock()
	if off {
		s.lock()
		c.end(net.ErrClosed)
		s.unlock()
		return errors.New("the switch has no power")
	}
	done := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(done)
	}()
	err := c.read()
	if errors.Is(err, errVersion) {
		c.flush()
	}
	s.lock()
	c.end(err)
	s.unlock()
	close(done)
	<-written
	return c.ended
}

// end ends the channel. The lock must be held.
func (c *channel) end(why error) {
	if c.ended != nil {
		return
	}
	c.ended = why
	c.s.cancel(c.probe)
	c.s.channels = slices.DeleteFunc(slices.Clone(c.s.channels), func(o *channel) bool { return o == c })
	c.conn.Close()
}

// readBuffer is what is read at once, and executed under one lock: with a thousand switches each turn takes 10 us.
const readBuffer = 16 << 10

// read executes the messages of the controller.
func (c *channel) read() error {
	r := bufio.NewReaderSize(c.conn, readBuffer)
	for {
		if h, err := r.Peek(openflow.HeaderLen); err == nil && !c.arrived && openflow.Type(h[1]) != openflow.TypeHello {
			return fmt.Errorf("the controller sent no hello, but %q", h) // the length of another protocol is no length
		}
		all, err := batch(r)
		if err != nil {
			return err
		}
		if err := c.received(all); err != nil {
			return err
		}
		for c.waiting() > maxWaiting {
			if _, open := <-c.out.drained; !open {
				return net.ErrClosed
			}
		}
	}
}

// next returns the bytes of the next message.
func next(r *bufio.Reader) ([]byte, error) {
	h, err := r.Peek(openflow.HeaderLen)
	if err != nil {
		return nil, err
	}
	n, err := openflow.Length(h)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// message is one of the controller. err is why it cannot be decoded.
type message struct {
	bytes []byte
	xid   uint32
	body  openflow.Message
	err   error
}

// batch returns the next message, and those after it that have arrived.
func batch(r *bufio.Reader) (all []message, err error) {
	for {
		b, err := next(r)
		if err != nil {
			return nil, err
		}
		m := message{bytes: b}
		m.xid, m.body, m.err = openflow.Decode(b)
		all = append(all, m)
		if r.Buffered() < openflow.HeaderLen {
			return all, nil
		}
		h, _ := r.Peek(openflow.HeaderLen)
		if n, err := openflow.Length(h); err != nil || r.Buffered() < n {
			return all, nil
		}
	}
}

// received executes messages. An error ends the channel.
func (c *channel) received(all []message) error {
	s := c.s
	s.lock()
	defer s.unlock()
	c.heard, c.asked = time.Now(), false
	for _, m := range all {
		switch {
		case c.ended != nil:
			return c.ended
		case !c.arrived:
			if err := c.hello(m.body, m.err); err != nil {
				return err
			}
		case m.err != nil:
			c.refuse(xidOf(m.bytes), m.bytes, malformed(m.bytes, m.err))
		default:
			if e := c.execute(m.xid, m.body, m.bytes); e != nil {
				c.refuse(m.xid, m.bytes, e)
			}
		}
	}
	return nil
}

var errVersion = errors.New("no common version")

// flush gives the controller a second to read why it is refused.
func (c *channel) flush() {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for c.waiting() > 0 {
		select {
		case <-c.out.drained:
		case <-timer.C:
			return
		}
	}
}

// hello negotiates the version (section 6.3.1).
func (c *channel) hello(m openflow.Message, err error) error {
	h, ok := m.(*openflow.Hello)
	if err != nil || !ok {
		return fmt.Errorf("the controller sent no hello: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	if _, err := openflow.Negotiate(h, openflow.NewHello(openflow.Version)); err != nil {
		c.send(0, &openflow.Error{Kind: openflow.ErrHelloFailed, Code: openflow.HelloIncompatible, Data: []byte(err.Error())})
		return fmt.Errorf("%w: %w", errVersion, err)
	}
	c.arrived = true
	if len(c.s.channels) == 0 && c.s.options.FlushOnFirst {
		c.s.empty()
	}
	c.s.channels = append(slices.Clone(c.s.channels), c)
	return nil
}

// watch asks a controller that sends nothing whether it is alive (section 6.4).
func (c *channel) watch() {
	interval := cmp.Or(c.s.options.EchoInterval, defaultEcho)
	if interval < 0 {
		return
	}
	silent := time.Since(c.heard)
	wait := interval - silent
	switch {
	case silent >= interval && c.asked:
		c.end(errors.New("the controller does not answer"))
		return
	case silent >= interval:
		c.asked = true
		c.heard = time.Now()
		if c.arrived {
			c.send(0, &openflow.EchoRequest{})
		}
		wait = interval
	}
	c.probe = c.s.after(wait, c.watch)
}

// refuse sends an error with the message that caused it (section 7.4.4).
func (c *channel) refuse(xid uint32, b []byte, e *openflow.Error) {
	const header = 8 + 4 + 4 // of the error
	n := min(len(b), 65535-header)
	if limit := c.s.options.ErrorBytes; limit > 0 {
		n = min(n, max(limit, leastErrorData))
	}
	e.Data = b[:n]
	c.send(xid, e)
}

// send queues a message.
func (c *channel) send(xid uint32, m openflow.Message) {
	if c.conn == nil || c.ended != nil {
		return
	}
	c.out.mu.Lock()
	_, packetIn := m.(*openflow.PacketIn)
	if packetIn && c.out.packetIns >= maxPacketIns {
		c.out.mu.Unlock()
		return
	}
	b, err := openflow.Append(c.out.waiting, xid, m)
	if err != nil {
		b, err = openflow.Append(c.out.waiting, xid, refuse(openflow.ErrBadRequest, openflow.RequestMultipartBufferOverflow))
	}
	if err == nil {
		c.out.waiting = b
		if packetIn {
			c.out.packetIns++
		}
	}
	full := len(c.out.waiting) > maxOut
	c.out.mu.Unlock()
	signal(c.out.changed)
	if full {
		c.end(errors.New("the controller does not read"))
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// waiting is how many bytes are to be written.
func (c *channel) waiting() int {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.out.waiting)
}

// write writes what waits, until the channel ends.
func (c *channel) write(done chan struct{}) {
	defer close(c.out.drained)
	var b []byte
	for {
		select {
		case <-c.out.changed:
		case <-done:
		}
		c.out.mu.Lock()
		b, c.out.waiting, c.out.packetIns = c.out.waiting, b[:0], 0
		c.out.mu.Unlock()
		if len(b) > 0 {
			if _, err := c.conn.Write(b); err != nil {
				c.conn.Close() // the reader ends as well
				return
			}
		}
		signal(c.out.drained)
		select {
		case <-done:
			return
		default:
		}
	}
}
