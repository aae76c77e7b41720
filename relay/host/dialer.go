package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
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

	mu   sync.Mutex
	now  session
	all  []*kept
	done bool
}

// session is a session with the exit. An exit that was started again knows nothing of it; then another begins.
type session struct {
	id          sessionID
	link        *Link
	number      uint32 // of the newest stream
	established bool
}

// NewDialer returns a dialer; Run opens its streams.
func NewDialer(auth *Auth, exit relay.Exit, o stripe.Options) *Dialer {
	o.Dialer = true
	d := &Dialer{Auth: auth, Exit: exit, Options: o, Log: slog.Default()}
	d.begin()
	return d
}

// begin begins a session. d.mu must be held.
func (d *Dialer) begin() {
	d.now = session{link: NewLink(d.Options, nil)}
	d.now.link.observed = observed{exit: d.Exit.Address.String(), ended: func(c ConnectionStatus) {
		if d.Ended != nil {
			d.Ended(c)
		}
	}}
	rand.Read(d.now.id[:])
}

// Run keeps the streams open until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range d.Exit.Paths {
		all.Go(func() { d.path(ctx, p) })
	}
	<-ctx.Done()
	d.mu.Lock()
	d.done = true
	d.now.link.Close()
	d.mu.Unlock()
	all.Wait()
}

// errRestarted ends a stream of a session that the exit does not know any longer.
var errRestarted = errors.New("the exit was started again")

// establish decides whether a stream goes on in its session, by what the exit replied.
func (d *Dialer) establish(in session, reply byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.done:
		return net.ErrClosed
	case in.id != d.now.id:
		return errRestarted // another stream has seen it
	case reply == newSession && in.established: // before this stream's hello
		d.now.link.Close()
		d.begin()
		return errRestarted
	}
	d.now.established = true
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

// Streams returns how many streams are open.
func (d *Dialer) Streams() int {
	link := d.link()
	link.mu.Lock()
	defer link.mu.Unlock()
	return len(link.streams)
}
