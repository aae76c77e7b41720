package host

import (
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/relay/stripe"
)

// An agent that another process replaces keeps its sessions until their last connection has ended, but takes no further
// streams. It tells the other agents by a frame, as HTTP/2 does by GOAWAY. They open another session, which the new
// process accepts, and close the former one when it has no connections left.

// goAway is that frame. Its Offset is 0.
var goAway = stripe.Frame{Kind: stripe.Ping, Fin: true}

// isApart reports whether a frame is a Ping with Fin, which the session neither sends nor counts.
func isApart(f stripe.Frame) bool { return f.Kind == stripe.Ping && f.Fin }

func isGoAway(f stripe.Frame) bool { return isApart(f) && f.Offset == 0 }

const (
	// idleInterval is the interval in which sessions without connections are looked for.
	idleInterval = 200 * time.Millisecond
	// idleIntervals is for how many of them such a session stays open, for the last acknowledgements.
	idleIntervals = 3
)

// goAway makes the other agent open new connections in another session.
func (l *Link) goAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.goingAway {
		return
	}
	l.goingAway = true
	for _, st := range l.streams {
		st.apart <- goAway
	}
}

// use returns how many connections and streams the session has.
func (l *Link) use() (connections, streams int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.session.Conns(), len(l.conns), l.carrying), len(l.streams)
}

// drain returns when the session has had no connections for a while, or has no stream that can be opened again.
func (s *session) drain(ctx context.Context) {
	for idle := 0; idle < idleIntervals; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(idleInterval):
		}
		connections, streams := s.link.use()
		switch {
		case streams == 0 && s.ctx.Err() != nil:
			return
		case connections == 0:
			idle++
		default:
			idle = 0
		}
	}
}

// replace opens another session, because the exit does not accept streams for this one. d.mu must be held.
func (d *Dialer) replace(s *session) {
	if s != d.now && s != d.next || s.ctx.Err() != nil {
		return
	}
	s.end()
	switch {
	case d.done || d.draining:
	case s == d.next || d.next == nil:
		d.next = d.newSession()
		d.open(d.next)
	}
	if s != d.now { // drained when the next one can carry connections
		d.finish(s)
	}
}

// opened makes the next session the present one: it has a stream. Until then the former one carries the connections.
func (d *Dialer) opened(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == d.next && !d.done {
		former := d.now
		d.now, d.next = s, nil
		d.finish(former)
	}
}

// finish closes a session when its last connection has ended. d.mu must be held.
func (d *Dialer) finish(s *session) {
	d.running.Go(func() {
		s.drain(d.ctx)
		s.link.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sessions = slices.DeleteFunc(d.sessions, func(o *session) bool { return o == s })
	})
}

// drain closes the sessions when their last connection has ended; the caller opens no further ones.
func (d *Dialer) drain() {
	d.mu.Lock()
	d.draining = true
	all := slices.Clone(d.sessions)
	d.mu.Unlock()
	for _, s := range all {
		s.drain(d.ctx)
		s.end()
		s.link.Close() // the exit may wait for it, too
	}
}

// goAway makes the entries open new connections in another session, which the next process accepts.
func (a *Acceptor) goAway() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.goingAway = true
	for _, one := range a.links {
		one.goAway()
	}
}

// drain returns when the entries have ended their streams, and the connections of streams that failed have ended. The
// caller has closed the listener.
func (a *Acceptor) drain(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		a.open.Wait()
		close(ended)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	for a.carries() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(idleInterval):
		}
	}
}

func (a *Acceptor) carries() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.links {
		if connections, _ := one.use(); connections > 0 {
			return true
		}
	}
	return false
}
