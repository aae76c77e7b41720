package network

import (
	"context"
	"crypto/tls"
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
	// handshakeTimeout is how long the handshake of TLS may take: three round trips over a link with a delay of a second.
	handshakeTimeout = 5 * time.Second
	// leadRetry is after what time a switch that could not be led is tried again.
	leadRetry = time.Second
)

// Options configure Switches.
type Options struct {
	// Key is what discovery frames are authenticated with, the same for all controllers.
	Key []byte
	// TLS is for listeners with TLS. It requires certificates whose DNS names are datapath ids.
	TLS *tls.Config
	// Plain, if set, is a listener without TLS that does not depend on the configuration of the network.
	Plain net.Listener
	// Changed, if set, is called after each event of a term: something in the network has changed. It must not block.
	Changed func()
}

// Switches are the switches that are connected to this controller.
type Switches struct {
	options   Options
	listeners listeners
	events    events
	refusals  refusals

	open, handshakes chan struct{} // have an element for each

	mu         sync.Mutex
	config     *fabric.Config // nil without one: every switch is accepted
	channels   map[*session.Conn]fabric.Listener
	duplicates map[fabric.DPID]duplicate
	term       *term         // nil while this controller is not the leader
	changed    chan struct{} // closed when term changes
}

// term is a time of this controller as the leader.
type term struct {
	live  *live.Network
	ended <-chan struct{}
}

// New returns what accepts switches at the listeners of a configuration. It owns the plain listener of the options.
func New(o Options) *Switches {
	return &Switches{
		options: o, listeners: newListeners(), channels: map[*session.Conn]fabric.Listener{}, changed: make(chan struct{}),
		open: make(chan struct{}, maxSwitches), handshakes: make(chan struct{}, maxHandshakes),
	}
}

// Listeners returns the addresses at which switches connect.
func (s *Switches) Listeners() []ListenerStatus {
	all := s.listeners.status()
	if s.options.Plain != nil {
		all = append(all, ListenerStatus{Address: s.options.Plain.Addr().String()})
	}
	return all
}

// Serve accepts switches until ctx ends, and returns when all channels are closed.
func (s *Switches) Serve(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if l := s.options.Plain; l != nil {
		defer l.Close() // before the wait
		slog.Info("accepting switches without authentication", "address", l.Addr())
		running.Go(func() { s.accept(ctx, l, fabric.Listener{}) })
	}
	s.listeners.follow(ctx, func(l net.Listener, at fabric.Listener) { s.accept(ctx, l, at) })
}

// Configure replaces the configuration of the network; nil accepts every switch, at the plain listener alone. Switches that are
// not accepted are disconnected, and those of a listener that is gone.
func (s *Switches) Configure(c *fabric.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = c
	for one, at := range s.channels {
		if why := s.refusal(one, at); why != nil {
			go one.CloseFor(why)
		}
	}
	if s.term != nil {
		if c != nil {
			s.term.live.Configure(*c)
		} else {
			s.term.live.Unconfigure()
		}
	}
	var at []fabric.Listener
	if c != nil {
		at = c.Listen
	}
	s.listeners.set(at)
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
func (s *Switches) serve(ctx context.Context, conn net.Conn, at fabric.Listener) {
	c, err := s.handshake(ctx, conn, at.TLS)
	if err != nil {
		conn.Close()
		if ctx.Err() == nil {
			s.refuse(conn.RemoteAddr(), explainTLS(err, conn))
		}
		return
	}
	defer c.Close()
	if err := s.register(ctx, c, at); err != nil {
		s.refuse(conn.RemoteAddr(), err)
		return
	}
	defer s.unregister(c)
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
	if t != nil && s.config != nil {
		t.live.Configure(*s.config)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Lead leads all switches, those that connect meanwhile too, until ctx ends, which is a term of the leader. Each term has a
// higher generation than those before, also of other controllers. The channels stay open.
func (s *Switches) Lead(ctx context.Context, generation uint64) {
	event := func(e fabric.Event) {
		if ctx.Err() == nil { // that the loop leaves the switches is none
			s.events.add(e)
			if s.options.Changed != nil {
				s.options.Changed()
			}
		}
	}
	s.events.begin(time.Now())
	s.setTerm(&term{live.New(ctx, live.Options{Key: s.options.Key, Generation: generation, Event: event}), ctx.Done()})
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

// Events returns the last events that happened in this controller's terms, the oldest first, and from when on there is no gap: when
// its last term began, or later if there were more than are kept.
func (s *Switches) Events() ([]fabric.Event, time.Time) { return s.events.all() }
