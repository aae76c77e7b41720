package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// Windows of connections and sessions, chosen for Headgate: two streams of 300 Mbit/s whose round-trip times differ by
// 375 ms need 28 MB of one connection.
var windows = stripe.Options{ConnWindow: 64 << 20, SessionWindow: 512 << 20, MaxPending: 1 << 20}

// ReadKey reads the key that agents share.
func ReadKey(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w: create one with \"headgate relay key %s\"", err, file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by other users: chmod 600 %[1]s", file)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	return key, nil
}

// Run runs an agent until ctx ends. ready is called when all listeners are open.
func Run(ctx context.Context, p relay.Policy, key []byte, log *slog.Logger, ready func()) error {
	return NewAgent(p, log).Run(ctx, key, ready)
}

// Run runs the agent until ctx ends. ready is called when all listeners are open.
func (a *Agent) Run(ctx context.Context, key []byte, ready func()) error {
	p, log := a.policy, a.log
	auth, err := NewSharedKey(key, !p.Plain)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer a.serve()()
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
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
	if p.Accept.Listen != "" {
		l, err := Listen(ctx, p.Accept.Listen)
		if err != nil {
			return fmt.Errorf("cannot accept streams: %w", err)
		}
		listeners = append(listeners, l)
		acceptor := &Acceptor{Auth: auth, Options: windows, Accept: p.Accept, Log: log}
		a.accepts(acceptor)
		all.Go(func() { fail(acceptor.Serve(l)) })
		defer acceptor.Close()
	}
	dialers := make([]*Dialer, len(p.Exits))
	for n, e := range p.Exits {
		d := NewDialer(auth, e, windows)
		d.Log = log
		a.dials(d)
		dialers[n] = d
		all.Go(func() { d.Run(ctx) })
	}
	for _, f := range p.Forwards {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
		if err != nil {
			return fmt.Errorf("cannot accept connections: %w", err)
		}
		listeners = append(listeners, l)
		d := dialers[p.ExitFor(f.To.Addr())]
		all.Go(func() { fail(forward(l, d, f.To)) })
	}
	if len(p.Take) > 0 {
		taking, err := listenTransparent(ctx)
		if err != nil {
			return err
		}
		listeners = append(listeners, taking...)
		for _, l := range taking {
			all.Go(func() { fail(takeConnections(l, p, dialers, log)) })
		}
	}
	if len(p.Take) > 0 || p.Accept.KeepSource {
		all.Go(func() { fail(intercept(ctx, p, dialers, log)) })
	}
	if ready != nil {
		ready()
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// forward carries the connections of a listener to a destination.
func forward(l net.Listener, d *Dialer, to netip.AddrPort) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if err := d.Carry(c, to); err != nil {
			c.Close()
			return err
		}
	}
}
