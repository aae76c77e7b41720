package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// Constants of sessions, chosen for Headgate.
const (
	// handshakeTimeout is how long a peer may take to become a switch with features and ports. Open vSwitch takes
	// milliseconds; hardware switches with slow processors take seconds after they have started.
	handshakeTimeout = 10 * time.Second
	// DefaultEchoInterval and DefaultEchoTimeout find a switch that hangs within 5 s, as Open vSwitch finds its controller
	// (inactivity_probe).
	DefaultEchoInterval, DefaultEchoTimeout = 2 * time.Second, 3 * time.Second
	// maxQueued is how many bytes of messages other than changes may wait for a switch that does not read.
	maxQueued = 16 << 20
	// maxMalformed is how many messages of a switch may be malformed before it is disconnected.
	maxMalformed = 100
)

// Options configure a session.
type Options struct {
	// Handle is called with each message that answers nothing: packet-in, flow-removed, port-status, role changes, and
	// errors of messages that were sent with Send. It must return soon: nothing is read meanwhile. It may be nil.
	Handle func(*Conn, openflow.Message)
	// Malformed is called with the error of each message that cannot be decoded, as Handle. It may be nil.
	Malformed func(*Conn, error)
	// EchoInterval is how long a switch may send nothing before it is asked whether it is alive, and EchoTimeout how long
	// it may then take to send anything. 0 is the default.
	EchoInterval, EchoTimeout time.Duration
}

// Conn is the channel to a switch.
type Conn struct {
	conn     net.Conn
	options  Options
	features openflow.FeaturesReply
	desc     openflow.Desc

	out outQueue

	mu       sync.Mutex
	xid      uint32
	pending  map[uint32]*pending
	applying []*changes
	parts    openflow.Reassembler
	ports    map[openflow.PortNo]openflow.Port // nil until the switch has described them
	sorted   []openflow.Port                   // of ports, nil after one of them has changed
	surplus  int                               // ports that are not in ports
	closed   error                             // why; nil while open

	counters counters
	alive    liveness
	done     chan struct{} // closed after closed is set
	running  sync.WaitGroup
}

// Errors of a session that has ended.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the session was closed")
	// ErrSilent: the switch did not answer an echo request in time.
	ErrSilent = errors.New("the switch does not answer")
	// ErrTLS: the peer begins with TLS, and the connection that was passed to Open has none.
	ErrTLS = errors.New("the peer speaks TLS")
	// ErrSlow: the switch does not read what was sent.
	ErrSlow = errors.New("the switch does not read")
)

// Open performs the handshake over a connection that a switch has opened: versions, features, description and ports. The
// session then owns the connection. An error names the peer, and has closed the connection.
func Open(ctx context.Context, conn net.Conn, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	c := &Conn{conn: conn, options: o, pending: map[uint32]*pending{}, done: make(chan struct{})}
	c.out.changed.L, c.out.room.L, c.alive.began = &c.mu, &c.mu, time.Now()
	c.out.direct = newDirect(conn)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	r, err := c.hello()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("handshake with %v: %w", conn.RemoteAddr(), cause(ctx, err))
	}
	c.running.Go(func() { c.read(r) })
	c.running.Go(c.write)
	if err := c.describe(ctx); err != nil {
		c.end(err)
		c.running.Wait()
		return nil, fmt.Errorf("handshake with %v: %w", conn.RemoteAddr(), cause(ctx, err))
	}
	c.watch()
	return c, nil
}

// cause returns the error of a context instead of what it caused.
func cause(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it did not describe itself as an OpenFlow 1.3 switch within %v", handshakeTimeout)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// describe asks what the switch is.
func (c *Conn) describe(ctx context.Context) error {
	features, err := request[*openflow.FeaturesReply](ctx, c, &openflow.FeaturesRequest{})
	if err != nil {
		return err
	}
	if features.AuxiliaryID != 0 {
		return fmt.Errorf("it is auxiliary connection %d of switch %016x: configure the switch without auxiliary connections", features.AuxiliaryID, features.DatapathID)
	}
	c.features = *features
	desc, err := Ask[*openflow.Desc](ctx, c, &openflow.DescRequest{})
	if err != nil {
		return err
	}
	c.desc = *desc
	// A packet-in must have the whole packet: a switch that keeps packets in buffers loses them when these are full.
	if err := c.Send(&openflow.SetConfig{Config: openflow.Config{MissSendLen: openflow.NoBufferLen}}); err != nil {
		return err
	}
	_, err = c.multipart(ctx, &openflow.PortDescRequest{}) // the reader keeps the ports
	return err
}

// DatapathID returns the id of the switch.
func (c *Conn) DatapathID() uint64 { return c.features.DatapathID }

// Features returns what the switch reported at the handshake.
func (c *Conn) Features() openflow.FeaturesReply { return c.features }

// Desc returns the manufacturer's description of the switch.
func (c *Conn) Desc() openflow.Desc { return c.desc }

// RemoteAddr returns the address of the switch.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// Done is closed when the session has ended; Err then tells why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the session has ended, nil before.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close ends the session, and returns when Handle is no longer called. Handle must not call it.
func (c *Conn) Close() { c.CloseFor(ErrClosed) }

// CloseFor is Close for a reason, which Err returns unless the session has ended before.
func (c *Conn) CloseFor(why error) {
	c.end(why)
	c.running.Wait()
}

// end ends the session for a reason. It may be called in Handle.
func (c *Conn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return
	}
	c.closed = why
	for xid, p := range c.pending {
		p.fail(why)
		delete(c.pending, xid)
	}
	c.alive.stop()
	c.out.close()
	c.conn.Close()
	close(c.done)
}
