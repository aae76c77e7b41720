package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// Constants of the streams between agents, chosen for Headgate.
const (
	// dialTimeout is the timeout of a stream's connection.
	dialTimeout = 5 * time.Second
	// minPause and maxPause bound the delay before a stream that could not be opened, or has ended, is tried again.
	minPause, maxPause = 200 * time.Millisecond, 10 * time.Second
	// orphanTimeout is how long a session's connections are kept without a stream.
	orphanTimeout = 30 * time.Second
	// connectTimeout is the timeout of a connection to a destination.
	connectTimeout = 10 * time.Second
)

// Dialer keeps the streams to an exit open.
type Dialer struct {
	Auth    *Auth
	Exit    relay.Exit
	Options stripe.Options
	Log     *slog.Logger
	// Ended is called with the record of a connection that has ended. It may be nil, and must not block.
	Ended func(ConnectionStatus)

	mu sync.Mutex
	// now carries new connections. next replaces it as soon as it has a stream: an exit that was started again, or is
	// another process, accepts no further streams for a former session.
	now, next *session
	sessions  []*session // these, and those whose last connection has not ended
	all       []*kept
	// destinations are those that the exit has announced.
	destinations []netip.Prefix
	done         bool
	draining     bool // another process carries new connections
	ctx          context.Context
	running      sync.WaitGroup
}

// session is a session with the exit.
type session struct {
	id          sessionID
	link        *Link
	number      uint32 // of the newest stream
	established bool
	answered    atomic.Bool // the exit has announced its destinations
	// ctx ends when no further streams are opened.
	ctx context.Context
	end context.CancelFunc
}

// NewDialer returns a dialer; Run opens its streams.
func NewDialer(auth *Auth, exit relay.Exit, o stripe.Options) *Dialer {
	o.Dialer = true
	d := &Dialer{Auth: auth, Exit: exit, Options: o, Log: slog.Default()}
	d.now = d.newSession()
	return d
}

// newSession returns a session without streams. d.mu must be held.
func (d *Dialer) newSession() *session {
	s := &session{link: NewLink(d.Options, nil)}
	s.link.observed = observed{exit: d.Exit.Address.String(), direct: directPath{name: firstPath(d.Exit.Paths)}, ended: func(c ConnectionStatus) {
		if d.Ended != nil {
			d.Ended(c)
		}
	}}
	if d.Exit.Announced {
		s.link.observed.asks = func() bool { return !s.answered.Load() }
		s.link.observed.announced = func(payload []byte) { d.announced(s, payload) }
	}
	s.link.replaced = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.replace(s)
	}
	rand.Read(s.id[:])
	d.sessions = append(d.sessions, s)
	return s
}

// open keeps the streams of a session open. d.mu must be held.
func (d *Dialer) open(s *session) {
	s.ctx, s.end = context.WithCancel(d.ctx)
	for _, p := range d.Exit.Paths {
		d.running.Go(func() { d.path(s, p) })
	}
}

// Run keeps the streams open until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	d.mu.Lock()
	d.ctx = ctx
	d.open(d.now)
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	d.done = true
	for _, s := range d.sessions {
		s.link.Close()
	}
	d.mu.Unlock()
	d.running.Wait()
}

// errRestarted ends a stream of a session that the exit does not know any longer.
var errRestarted = errors.New("the exit was started again")

// establish decides whether a stream goes on in its session, by what the exit replied. established tells whether the
// session was when the stream's hello was sent.
func (d *Dialer) establish(s *session, established bool, reply byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.done:
		return net.ErrClosed
	case s.ctx.Err() != nil:
		return errRestarted // another stream has seen it
	case reply == newSession && established:
		d.replace(s)
		return errRestarted
	}
	s.established = true
	return nil
}

// Carry carries an application's connection to a destination.
func (d *Dialer) Carry(app net.Conn, to netip.AddrPort) error {
	from, _ := netip.ParseAddrPort(app.RemoteAddr().String())
	text, err := json.Marshal(destination{To: to, From: from})
	if err != nil {
		return err
	}
	d.link().Open(app, text)
	return nil
}

// link returns the present session with the exit.
func (d *Dialer) link() *Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.link
}

// links returns all sessions with the exit.
func (d *Dialer) links() (all []*Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		all = append(all, s.link)
	}
	return all
}

// Streams returns how many streams are open.
func (d *Dialer) Streams() int {
	link := d.link()
	link.mu.Lock()
	defer link.mu.Unlock()
	return len(link.streams)
}

// RTT returns the shortest round-trip time of the open streams, 0 if there is none.
func (d *Dialer) RTT() (shortest time.Duration) {
	link := d.link()
	link.mu.Lock()
	open := slices.Collect(maps.Values(link.streams))
	link.mu.Unlock()
	for _, st := range open {
		if rtt := minRTT(tcpInfo(st.raw)); rtt > 0 && (shortest == 0 || rtt < shortest) {
			shortest = rtt
		}
	}
	return shortest
}
