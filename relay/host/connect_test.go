package host

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// Connect ends when the last stream or its context does, and a connection that was reset meanwhile is not carried.
func TestConnect(t *testing.T) {
	p := newPair(t, 0)
	asked, answer := make(chan bool, 10), make(chan error)
	p.exit.dial = func([]byte) (net.Conn, error) {
		asked <- true
		if err := <-answer; err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := l.Accept()
		if err == nil {
			reset(far)
		}
		return c, err
	}
	p.add(1)
	until(t, "the stream is open", func() bool { p.entry.mu.Lock(); defer p.entry.mu.Unlock(); return len(p.entry.streams) == 1 })
	ended := make(chan error, 1)
	connect := func(ctx context.Context) { _, err := p.entry.Connect(ctx, nil); ended <- err }
	ctx, cancel := context.WithCancel(t.Context())
	go connect(ctx)
	<-asked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after the context: %v", err)
	}
	until(t, "the exit forgets the connection", func() bool { p.exit.mu.Lock(); defer p.exit.mu.Unlock(); return p.exit.session.Conns() == 0 })
	answer <- nil // too late
	go connect(t.Context())
	answer <- refusal{notAllowed, "no"}
	if err := <-ended; !errors.Is(err, refusal{notAllowed, "no"}) {
		t.Errorf("a refusal arrives as %#v", err)
	}
	done := make(chan *conn)
	go func() {
		k, err := p.entry.Connect(t.Context(), nil)
		if err != nil {
			t.Error(err)
		}
		done <- k
	}()
	answer <- nil
	if k := <-done; k != nil {
		until(t, "the destination's reset arrives", func() bool { p.entry.mu.Lock(); defer p.entry.mu.Unlock(); return k.ended })
		near, far := net.Pipe()
		k.carry(near)
		far.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := far.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after a reset: %v", err)
		}
	}
	for len(asked) > 0 {
		<-asked
	}
	go connect(t.Context())
	<-asked
	p.streams[1].Close()
	if err := <-ended; !errors.Is(err, errNoExit) {
		t.Errorf("after the last stream: %v", err)
	}
	if _, err := p.entry.Connect(t.Context(), nil); !errors.Is(err, errNoExit) {
		t.Errorf("without a stream: %v", err)
	}
	answer <- errors.New("too late")
	p.entry.mu.Lock()
	defer p.entry.mu.Unlock()
	p.exit.mu.Lock()
	defer p.exit.mu.Unlock()
	if len(p.entry.conns)+len(p.exit.conns) > 0 {
		t.Errorf("%d and %d connections are left", len(p.entry.conns), len(p.exit.conns))
	}
}

// A refusal is the same after the way to another agent; a reason of another form is a failure.
func TestRefusal(t *testing.T) {
	_, err := net.Dial("tcp", closedPort(t))
	for _, c := range []struct {
		err   error
		cause cause
	}{{err, refused}, {refusal{notAllowed, "no: never"}, notAllowed}, {context.DeadlineExceeded, timedOut}, {errors.New("refuse: x"), failed}} {
		r := refusalOf(c.err)
		if r.cause != c.cause || r.text != c.err.Error() || parseRefusal(r.reason()) != r {
			t.Errorf("%v: %#v, parsed %#v", c.err, r, parseRefusal(r.reason()))
		}
	}
	if r := parseRefusal("new cause: text"); r != (refusal{failed, "new cause: text"}) {
		t.Errorf("an unknown cause: %#v", r)
	}
}

// closedPort is an address of the loopback where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The status has the addresses and the beginning of a connection that Connect has opened.
func TestConnectDescribes(t *testing.T) {
	p := newPair(t, 0)
	to := netip.MustParseAddrPort(echo(t))
	p.exit.dial = func([]byte) (net.Conn, error) { return net.Dial("tcp", to.String()) }
	p.add(1)
	until(t, "the stream is open", func() bool {
		p.entry.mu.Lock()
		defer p.entry.mu.Unlock()
		return len(p.entry.streams) == 1
	})
	from := netip.MustParseAddrPort("192.0.2.9:1234")
	text, err := json.Marshal(destination{To: to, From: from})
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.entry.Connect(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if c := k.status(time.Now()); c.Client != from || c.Destination != to || c.Began.IsZero() {
		t.Errorf("status %+v", c)
	}
}
