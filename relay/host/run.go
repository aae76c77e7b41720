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
	key, err := readPrivate(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the key: %w: create one with \"headgate relay key %s\"", err, file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	return key, nil
}

// readPrivate reads a file that no other user may read.
func readPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by other users: chmod 600 %[1]s", file)
	}
	return os.ReadFile(file)
}

// Run runs an agent until ctx ends. ready is called when all listeners are open.
func Run(ctx context.Context, p relay.Policy, key []byte, log *slog.Logger, ready func()) error {
	auth, err := NewSharedKey(key, !p.Plain)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
		a := &Acceptor{Auth: auth, Options: windows, Accept: p.Accept, Log: log}
		all.Go(func() { fail(a.Serve(l)) })
		defer a.Close()
	}
	dialers := make([]*Dialer, len(p.Exits))
	for n, e := range p.Exits {
		d := NewDialer(auth, e, windows)
		d.Log = log
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
