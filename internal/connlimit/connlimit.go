// Package connlimit bounds the connections of a listener. A connection of which it is not known who it is of costs memory before anybody has shown a token
// or a certificate: when there are too many of them a new one closes the oldest, so that whoever holds thousands open locks nobody out.
package connlimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds are numbers of connections.
type Bounds struct {
	// Unknown is how many connections may be of unknown peers, and UnknownOf how many of them come from one address, or one /64 of IPv6.
	Unknown, UnknownOf int
	// Known is how many connections one known peer may have.
	Known int
	// Young is how many connections may be in their handshakes before others wait in the kernel, 0 if there is no bound. Thousands of handshakes at once
	// all end late, after their peers have given up.
	Young int
}

// A connection is in its handshake until its peer is known, but for no longer than silentTime if it sends nothing, and activeTime if it does, so that
// strangers hold others up for less than a second: 4,096 of them wait in the kernel. A handshake takes a millisecond of a processor.
const silentTime, activeTime = 20 * time.Millisecond, 500 * time.Millisecond

// Listener is a listener with bounds.
type Listener struct {
	net.Listener
	bounds Bounds
	young  chan struct{} // has an element for each connection in its handshake

	mu  sync.Mutex
	all *list.List            // connections of unknown peers, the oldest first
	of  map[string]*list.List // connections of a peer, by its address while it is unknown, or its name
}

// New bounds the connections of a listener.
func New(l net.Listener, b Bounds) *Listener {
	return &Listener{Listener: l, bounds: b, young: make(chan struct{}, b.Young), all: list.New(), of: map[string]*list.List{}}
}

// Accept accepts a connection, and closes the oldest of an unknown peer if there are too many.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: c, listener: l}
	if l.bounds.Young > 0 {
		l.young <- struct{}{}
		conn.grownUp = sync.OnceFunc(func() { <-l.young })
		time.AfterFunc(silentTime, func() {
			if conn.sent.Load() {
				time.AfterFunc(activeTime-silentTime, conn.grownUp)
			} else {
				conn.grownUp()
			}
		})
	}
	l.mu.Lock()
	conn.inAll = l.all.PushBack(conn)
	conn.join("address " + source(c.RemoteAddr()))
	var excess *connection
	if of := l.of[conn.peer]; of.Len() > l.bounds.UnknownOf {
		excess = of.Front().Value.(*connection)
	} else if l.all.Len() > l.bounds.Unknown {
		excess = l.all.Front().Value.(*connection)
	}
	l.mu.Unlock()
	if excess != nil {
		excess.Close()
	}
	return conn, nil
}

// source returns the address that connections are counted by: one peer may use any address of its /64 of IPv6.
func source(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, _ := ip.Prefix(64)
	return p.String()
}

// connection is a connection of a listener with bounds.
type connection struct {
	net.Conn
	listener *Listener
	grownUp  func()      // ends its handshake; nil if nobody waits for that
	sent     atomic.Bool // the peer has sent something

	// These are guarded by the listener's mutex.
	peer        string
	inAll, inOf *list.Element // nil when it is closed, or not of an unknown peer
}

// join adds the connection to those of a peer. The mutex must be held.
func (c *connection) join(peer string) {
	of := c.listener.of[peer]
	if of == nil {
		of = list.New()
		c.listener.of[peer] = of
	}
	c.peer, c.inOf = peer, of.PushBack(c)
}

// leave removes the connection from all lists. The mutex must be held.
func (c *connection) leave() {
	if c.inAll != nil {
		c.listener.all.Remove(c.inAll)
		c.inAll = nil
	}
	if c.inOf != nil {
		of := c.listener.of[c.peer]
		of.Remove(c.inOf)
		if c.inOf = nil; of.Len() == 0 {
			delete(c.listener.of, c.peer)
		}
	}
}

// Read reads what the peer sends.
func (c *connection) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	if n > 0 && !c.sent.Load() {
		c.sent.Store(true)
	}
	return n, err
}

// ended ends the handshake, if it has not ended.
func (c *connection) ended() {
	if c.grownUp != nil {
		c.grownUp()
	}
}

// Close closes the connection.
func (c *connection) Close() error {
	c.ended()
	c.listener.mu.Lock()
	c.leave()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// identify notes who the peer is.
func (c *connection) identify(peer string) {
	c.ended()
	l := c.listener
	l.mu.Lock()
	if c.inOf == nil || c.peer == peer { // closed, or known already
		l.mu.Unlock()
		return
	}
	c.leave()
	c.join(peer)
	var excess *connection
	if of := l.of[peer]; of.Len() > l.bounds.Known {
		excess = of.Front().Value.(*connection)
	}
	l.mu.Unlock()
	if excess != nil {
		excess.Close()
	}
}

// Identify notes who the peer of a connection is: a connection of TLS, or one that a Listener accepted. The oldest of too many connections of a peer is
// closed.
func Identify(c net.Conn, peer string) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*connection); ok {
		c.identify("peer " + peer)
	}
}

// connKey is the context key of a connection.
type connKey struct{}

// Context returns a context with the connection, for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// IdentifyIn is Identify of the connection in a context, if it has one.
func IdentifyIn(ctx context.Context, peer string) {
	if c, ok := ctx.Value(connKey{}).(net.Conn); ok {
		Identify(c, peer)
	}
}
