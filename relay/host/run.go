package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/relay"
)

// carrier carries connections to an exit.
type carrier interface {
	// Run keeps the streams open until ctx ends.
	Run(ctx context.Context)
	// Streams returns how many streams are open: without any, connections go direct.
	Streams() int
	// Carry carries an application's connection to a destination.
	Carry(app net.Conn, to netip.AddrPort) error
	// Connect connects a client to a destination, and returns when the exit has connected. A refusal is the exit's
	// error.
	Connect(ctx context.Context, from, to netip.AddrPort) (outlet, error)
}

// Run runs an agent until ctx ends. ready is called when all listeners are open.
func Run(ctx context.Context, p relay.Policy, auth *Auth, log *slog.Logger, ready func()) error {
	return NewAgent(p, log).Run(ctx, auth, ready)
}

// Run runs the agent until ctx ends. ready is called when all listeners are open.
func (a *Agent) Run(ctx context.Context, auth *Auth, ready func()) error {
	p, log := a.policy, a.log
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer a.serve()()
	failed := make(chan error, 1)
	fail := func(err error) {
		if err == nil || errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case failed <- err:
		default:
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	acceptor := &Acceptor{Auth: auth, Options: windows, Accept: p.Accept, Log: log}
	defer acceptor.Close()
	var listeners []net.Listener
	defer func() { // first, because all waits for those that accept
		for _, l := range listeners {
			l.Close()
		}
	}()
	if p.Accept.Listen != "" {
		l, err := Listen(ctx, p.Accept.Listen)
		if err != nil {
			return fmt.Errorf("cannot accept streams: %w", listen.Remedy(err, "listen in accept"))
		}
		listeners = append(listeners, l)
		a.accepts(acceptor)
		all.Go(func() { fail(acceptor.Serve(l)) })
	}
	dialers := make([]carrier, len(p.Exits))
	for n, e := range p.Exits {
		if e.SOS != nil {
			dialers[n] = &sosDialer{ctx: ctx, auth: auth, exit: e, log: log}
		} else {
			d := NewDialer(auth, e, windows)
			d.Log = log
			a.dials(d)
			dialers[n] = d
		}
		all.Go(func() { dialers[n].Run(ctx) })
	}
	for _, f := range p.Forwards {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
		if err != nil {
			return fmt.Errorf("cannot accept connections: %w", listen.Remedy(err, "listen in forward"))
		}
		listeners = append(listeners, l)
		d := dialers[p.ExitFor(f.To.Addr())]
		all.Go(func() { fail(forward(ctx, l, d, f.To, log)) })
	}
	asked, err := listenExplicit(ctx, p, dialers, log)
	if err != nil {
		return err
	}
	for _, one := range asked {
		listeners = append(listeners, one.Listener)
		all.Go(func() { fail(one.serve()) })
	}
	if len(p.Take) > 0 {
		taking, err := listenTransparent(ctx)
		if err != nil {
			return err
		}
		listeners = append(listeners, taking...)
		open := &takenSet{}
		for _, l := range taking {
			all.Go(func() { fail(takeConnections(l, p, dialers, open, log)) })
		}
	}
	if len(p.Take) > 0 || p.Accept.KeepSource {
		all.Go(func() { fail(intercept(ctx, p, dialers, log)) })
	}
	if ready != nil {
		ready()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
