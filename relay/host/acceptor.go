package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// Acceptor accepts the streams of other agents, and connects to the destinations of their connections.
type Acceptor struct {
	Auth    *Auth
	Options stripe.Options
	// Accept has the destinations; others are refused, so that the agent is no open proxy.
	Accept relay.Accept
	Log    *slog.Logger
	// Ended is called with the record of a connection that has ended. It may be nil, and must not block.
	Ended func(ConnectionStatus)

	refused, ended summary // what is logged of streams

	mu    sync.Mutex
	links map[sessionID]*accepted
	sos   map[sessionID]*sosAccepted
	open  sync.WaitGroup // the streams
	// goingAway is set by goAway.
	goingAway bool
}

type accepted struct {
	*Link
	streams int
	orphan  *time.Timer
}

// Listen returns a listener for streams.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{Control: prepare}).Listen(ctx, "tcp", address)
}

// Serve accepts streams until the listener is closed.
func (a *Acceptor) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		a.open.Go(func() {
			defer c.Close()
			if err := a.serve(c.(*net.TCPConn)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				a.ended.add(a.Log, "streams of relay agents ended", c.RemoteAddr(), err)
			}
		})
	}
}

func (a *Acceptor) serve(tcp *net.TCPConn) error {
	over, err := a.Auth.Server(tcp)
	if err != nil && !errors.Is(err, io.EOF) {
		a.refused.add(a.Log, "authentication of relay agents failed", tcp.RemoteAddr(), err)
		return nil
	}
	if err != nil {
		return err
	}
	begins, err := readMagic(over)
	if err != nil {
		return err
	}
	if begins == sosMagic {
		return a.serveSOS(over)
	}
	id, number, err := readHello(over)
	if err != nil {
		return err
	}
	link, reply := a.join(id)
	defer a.leave(id)
	link.from(number, tcp.RemoteAddr())
	if _, err := over.Write([]byte{reply}); err != nil {
		return err
	}
	return link.AddStream(number, tcp, over)
}

// join returns the link of a session, to which a stream is added.
func (a *Acceptor) join(id sessionID) (link *Link, reply byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.links == nil {
		a.links = map[sessionID]*accepted{}
	}
	one := a.links[id]
	reply = knownSession
	if one == nil {
		reply = newSession
		one = &accepted{Link: NewLink(a.Options, a.connect)}
		one.observed.ended, one.goingAway = a.Ended, a.goingAway
		one.observed.announces = announce(a.Accept.Destinations)
		a.links[id] = one
	}
	if one.orphan != nil {
		one.orphan.Stop()
		one.orphan = nil
	}
	one.streams++
	return one.Link, reply
}

// leave removes a stream from a session, and forgets a session that stays without streams.
func (a *Acceptor) leave(id sessionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.links[id]
	if one == nil {
		return // closed
	}
	if one.streams--; one.streams > 0 {
		return
	}
	one.orphan = time.AfterFunc(orphanTimeout, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if one.streams == 0 && a.links[id] == one {
			delete(a.links, id)
			one.Close()
		}
	})
}

// connect connects to the destination of a connection.
func (a *Acceptor) connect(description []byte) (net.Conn, error) {
	var d destination
	if err := json.Unmarshal(description, &d); err != nil {
		return nil, errors.New("malformed destination")
	}
	return a.dial(d)
}

// dial connects to a destination, if it is allowed.
func (a *Acceptor) dial(d destination) (net.Conn, error) {
	to := d.To.Addr().Unmap()
	if !a.Accept.Allows(to) {
		return nil, refusal{notAllowed, fmt.Sprintf("the exit does not connect to %s: add a prefix with it to the exit's destinations", to)}
	}
	if a.Accept.KeepSource && d.hasSource() {
		return dialFrom(context.Background(), netip.AddrPortFrom(d.From.Addr().Unmap(), d.From.Port()), netip.AddrPortFrom(to, d.To.Port()))
	}
	return net.DialTimeout("tcp", netip.AddrPortFrom(to, d.To.Port()).String(), connectTimeout)
}

// Close ends all sessions.
func (a *Acceptor) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, one := range a.links {
		delete(a.links, id)
		one.Close()
	}
}
