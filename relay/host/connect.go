package host

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
)

// errNoExit means that no stream to the exit is open, or that the last one ended before the exit answered.
var errNoExit = errors.New("no stream to the exit is open")

// Connect opens a connection, and waits until the other agent has connected to its destination: one round trip
// between the agents more than Open, whose application may write at once. The error is errNoExit, a refusal of the
// other agent, or that of ctx.
func (l *Link) Connect(ctx context.Context, description []byte) (*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.streams) == 0 {
		return nil, errNoExit
	}
	k := l.add(l.session.Open(description))
	l.describe(k, description)
	l.pump()
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		k.changed.Broadcast()
	})()
	for !k.opened && !k.ended && len(l.streams) > 0 && ctx.Err() == nil {
		k.changed.Wait()
	}
	var r refusal
	switch {
	case k.opened: // and perhaps reset since, which carry passes on
		return k, nil
	case k.ended && errors.As(k.err, &r):
		return nil, r
	case k.ended: // the link was closed
		return nil, errNoExit
	}
	k.c.Reset("the application's request has ended")
	k.end()
	l.pump()
	if len(l.streams) == 0 {
		return nil, errNoExit
	}
	return nil, ctx.Err()
}

// wakeConnecting makes Connect see that the last stream has ended. l.mu must be held.
func (l *Link) wakeConnecting() {
	for _, k := range l.conns {
		if k.app == nil && len(l.streams) == 0 {
			k.changed.Broadcast()
		}
	}
}

// carry passes the bytes of an application's connection on.
func (k *conn) carry(app net.Conn) {
	k.link.mu.Lock()
	defer k.link.mu.Unlock()
	if k.ended { // after the other agent had connected
		reset(app)
		return
	}
	k.run(app)
}

// Connect opens a connection to a destination for the client at from, as Link.Connect does.
func (d *Dialer) Connect(ctx context.Context, from, to netip.AddrPort) (outlet, error) {
	text, err := json.Marshal(destination{To: to, From: from})
	if err != nil {
		return nil, err
	}
	k, err := d.link().Connect(ctx, text)
	if err != nil {
		return nil, err
	}
	return k, nil
}
