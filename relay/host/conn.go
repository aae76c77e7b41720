package host

import (
	"io"
	"net"
	"sync"
	"time"

	"headgate.dev/headgate/relay/stripe"
)

// conn is an application's connection.
type conn struct {
	link *Link
	c    *stripe.Conn
	app  net.Conn // nil until the destination is connected to, for Connect
	// changed is signalled when the session has something to read or room for more. It uses link.mu.
	changed sync.Cond
	opened  bool // the other agent has connected
	ended   bool
	err     error

	// For passing on what the other agent sends: to is app, passing is true while a goroutine writes to it, and rest is
	// what must be written next of the chunk that was read last.
	to          net.Conn
	passing     bool
	chunk, rest []byte

	// For the status: when the connection began, between which addresses, and whether its record was made.
	began    time.Time
	about    destination
	rate     rate
	direct   directSeen
	finished bool
}

// start passes the bytes between an application's connection and the session on. l.mu must be held.
func (l *Link) start(c *stripe.Conn, app net.Conn) {
	l.add(c).run(app)
}

// add adds a connection without an application. l.mu must be held.
func (l *Link) add(c *stripe.Conn) *conn {
	k := &conn{link: l, c: c}
	k.changed.L = &l.mu
	l.conns[c] = k
	return k
}

// run passes the bytes of an application's connection on. link.mu must be held.
func (k *conn) run(app net.Conn) {
	k.app, k.to = app, newRawConn(app)
	k.link.carrying++
	var directions sync.WaitGroup
	directions.Go(k.send)
	directions.Go(k.receive)
	go func() {
		directions.Wait()
		app.Close()
		k.link.mu.Lock()
		defer k.link.mu.Unlock()
		k.link.carrying--
	}()
}

// end ends the application's connection at once. link.mu must be held.
func (k *conn) end() {
	if k.ended {
		return
	}
	k.ended = true
	k.finish()
	delete(k.link.conns, k.c)
	if k.app != nil {
		reset(k.app)
	}
	k.changed.Broadcast()
}

// reset ends an application's connection so that the application sees a reset.
func reset(app net.Conn) {
	if tcp, ok := app.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	app.Close()
}

// send passes on what the application sends.
func (k *conn) send() {
	l := k.link
	for {
		l.mu.Lock()
		for k.c.Room() == 0 && !k.ended {
			k.changed.Wait()
		}
		ended := k.ended
		l.mu.Unlock()
		if ended {
			return
		}
		data, err := read(k.app)
		l.mu.Lock()
		k.c.Write(data)
		switch {
		case err == io.EOF:
			k.c.CloseWrite()
		case err != nil && !k.ended:
			k.c.Reset("the connection of the application failed: " + err.Error())
			k.err = err
			k.end()
		}
		l.pump()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// closeWrite passes on the end of the direction.
func closeWrite(app net.Conn) {
	if half, ok := app.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
