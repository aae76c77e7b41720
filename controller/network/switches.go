package network

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
)

// Values chosen for Headgate.
const (
	// maxSwitches is how many switches are connected at once, four times the largest network that is tested.
	maxSwitches = 4096
	// maxHandshakes is how many of them have not described themselves yet. Each has a read buffer of 64 KiB, so that peers
	// that are no switches cost at most 32 MiB.
	maxHandshakes = 512
	// leadRetry is after what time a switch that could not be led is tried again.
	leadRetry = time.Second
	// acceptRetry is after what time connections are accepted again when the system refused: there are no file descriptors.
	acceptRetry = 100 * time.Millisecond
)

// Switches are the switches that are connected to this controller.
type Switches struct {
	listener net.Listener
	key      []byte
	events   events

	open, handshakes chan struct{} // have an element for each

	mu      sync.Mutex
	term    *term         // nil while this controller is not the leader
	changed chan struct{} // closed when term changes
}

// term is a time of this controller as the leader.
type term struct {
	live  *live.Network
	ended <-chan struct{}
}

// New returns what accepts switches at a listener, which it then owns. The key is what discovery frames are authenticated with,
// the same for all controllers.
func New(listener net.Listener, key []byte) *Switches {
	return &Switches{
		listener: listener, key: key, changed: make(chan struct{}),
		open: make(chan struct{}, maxSwitches), handshakes: make(chan struct{}, maxHandshakes),
	}
}

// Address returns the address at which switches connect.
func (s *Switches) Address() string { return s.listener.Addr().String() }

// Serve accepts switches until ctx ends, and returns when all channels are closed.
func (s *Switches) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { s.listener.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	slog.Info("accepting switches without authentication", "address", s.Address())
	for {
		conn, err := s.listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return
		case err != nil:
			slog.Warn("cannot accept switches, trying again", "error", err)
			time.Sleep(acceptRetry)
			continue
		case !take(s.open):
			slog.Warn("too many switches are connected, refusing one", "switch", conn.RemoteAddr(), "most", maxSwitches)
			conn.Close()
			continue
		}
		running.Go(func() {
			defer func() { <-s.open }()
			s.serve(ctx, conn)
		})
	}
}

func take(of chan struct{}) bool {
	select {
	case of <- struct{}{}:
		return true
	default:
		return false
	}
}

// serve carries the channel of a switch until it ends.
func (s *Switches) serve(ctx context.Context, conn net.Conn) {
	if !take(s.handshakes) {
		slog.Warn("too many peers have connected as switches without describing themselves, refusing one", "switch", conn.RemoteAddr(), "most", maxHandshakes)
		conn.Close()
		return
	}
	c, err := session.Open(ctx, conn, session.Options{Handle: s.handle})
	<-s.handshakes
	if err != nil {
		slog.Warn("cannot connect a switch", "error", err)
		return
	}
	defer c.Close()
	id := fabric.DPID(c.DatapathID())
	for {
		t, changed := s.current()
		var again <-chan time.Time
		switch {
		case t == nil:
			if err := yield(ctx, c); err != nil && c.Err() == nil && ctx.Err() == nil {
				slog.Warn("cannot become a slave of a switch", "switch", id, "error", err)
			}
		default:
			// It returns when the session or the term ends, or the switch refuses.
			if err := t.live.Lead(c); !t.over() && c.Err() == nil {
				slog.Warn("cannot lead a switch, trying again", "switch", id, "error", err)
				again = time.After(leadRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Done():
			slog.Info("a switch is disconnected", "switch", id, "error", c.Err())
			return
		case <-changed:
		case <-again:
		}
	}
}

func (t *term) over() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// handle passes on what a switch sends to the loop of the term.
func (s *Switches) handle(c *session.Conn, m openflow.Message) {
	if t, _ := s.current(); t != nil {
		t.live.Handle(c, m)
	}
}

// current returns the term, nil without one, and a channel that is closed when it changes.
func (s *Switches) current() (*term, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term, s.changed
}

func (s *Switches) setTerm(t *term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = t
	close(s.changed)
	s.changed = make(chan struct{})
}

// Lead leads all switches, those that connect meanwhile too, until ctx ends, which is a term of the leader. Each term has a
// higher generation than those before, also of other controllers. The channels stay open.
func (s *Switches) Lead(ctx context.Context, generation uint64) {
	event := func(e fabric.Event) {
		if ctx.Err() == nil { // that the loop leaves the switches is none
			s.events.add(e)
		}
	}
	s.setTerm(&term{live.New(ctx, live.Options{Key: s.key, Generation: generation, Event: event}), ctx.Done()})
	defer s.setTerm(nil)
	<-ctx.Done()
}

// Live returns the loop of the present term, nil if this controller does not lead.
func (s *Switches) Live() *live.Network {
	if t, _ := s.current(); t != nil && !t.over() {
		return t.live
	}
	return nil
}

// Events returns the last events that happened in this controller's terms, the oldest first.
func (s *Switches) Events() []fabric.Event { return s.events.all() }
