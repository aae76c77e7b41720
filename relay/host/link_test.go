package host

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/relay/stripe"
)

var options = stripe.Options{ConnWindow: 64 << 20, SessionWindow: 512 << 20, MaxPending: 1 << 20, Free: freePayload}

// pair is two links with streams between them over loopback. The exit connects to where the description says.
type pair struct {
	t           testing.TB
	auth        *Auth // of the streams; nil is none
	entry, exit *Link
	listener    net.Listener
	mu          sync.Mutex
	streams     map[uint32]net.Conn
	all         sync.WaitGroup
}

func newPair(t testing.TB, streams int) *pair { return newPairOf(t, streams, nil) }

// newSecurePair is a pair whose streams are encrypted, or authenticated at their beginning alone.
func newSecurePair(t testing.TB, streams int, encrypt bool) *pair {
	auth, err := NewAuth(peerauth.Credentials{Key: make([]byte, 16)}, !encrypt)
	if err != nil {
		t.Fatal(err)
	}
	return newPairOf(t, streams, auth)
}

func newPairOf(t testing.TB, streams int, auth *Auth) *pair {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialer := options
	dialer.Dialer = true
	p := &pair{t: t, auth: auth, listener: l, streams: map[uint32]net.Conn{}, entry: NewLink(dialer, nil), exit: NewLink(options, func(to []byte) (net.Conn, error) {
		return net.Dial("tcp", string(to))
	})}
	t.Cleanup(func() {
		p.entry.Close()
		p.exit.Close()
		l.Close()
		p.all.Wait()
	})
	for n := range streams {
		p.add(uint32(n + 1))
	}
	return p
}

func (p *pair) add(number uint32) {
	p.t.Helper()
	a, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := p.listener.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.streams[number] = a
	p.mu.Unlock()
	overA, overB := a, b
	if p.auth != nil {
		done := make(chan error, 1)
		go func() {
			var err error
			overB, err = p.auth.Server(b)
			done <- err
		}()
		overA, err = p.auth.Client(a)
		if err := errors.Join(err, <-done); err != nil {
			p.t.Fatal(err)
		}
	}
	p.all.Go(func() { p.entry.AddStream(number, a.(*net.TCPConn), overA) })
	p.all.Go(func() { p.exit.AddStream(number, b.(*net.TCPConn), overB) })
}

// connected returns both ends of a connection over loopback.
func connected(t testing.TB) (app, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if app, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return app, accepted
}

// echo is a server that sends back what it receives, until the client has ended its direction.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// open returns an application's end of a connection through the relay.
func (p *pair) open(to string) net.Conn {
	p.t.Helper()
	app, c := connected(p.t)
	p.entry.Open(c, []byte(to))
	return app
}

// A connection that has ended in order leaves no descriptor.
func TestDescriptors(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what is forgotten
	p, to := newPair(t, 2), echo(t)
	descriptors := func() (sockets int) { // and no pipes, which io.Copy of the server keeps
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if to, err := os.Readlink("/proc/self/fd/" + one.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
		return sockets
	}
	carry := func() {
		app := p.open(to)
		defer app.Close()
		if _, err := io.WriteString(app, "text"); err != nil {
			t.Fatal(err)
		}
		app.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(app); err != nil || string(got) != "text" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	carry()
	before := descriptors()
	for range 20 {
		carry()
	}
	until(t, "the descriptors are closed", func() bool { return descriptors() <= before+2 })
}

// Bytes go to the server and back unchanged, in many connections at once, while streams end and come.
func TestBytesArrive(t *testing.T) {
	p, to := newPair(t, 4), echo(t)
	stop := make(chan struct{})
	var killed sync.WaitGroup
	killed.Go(func() {
		for n := uint32(1); ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			p.add(n + 4)
			p.mu.Lock()
			p.streams[n].Close()
			p.mu.Unlock()
		}
	})
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			app := p.open(to)
			defer app.Close()
			text := make([]byte, 1<<(n+2)+n)
			for i := range text {
				text[i] = byte(rand.Uint32())
			}
			go func() {
				app.Write(text)
				app.(*net.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(app)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(text) {
				t.Errorf("connection %d: %d bytes of %d, %v", n, len(got), len(text), err)
			}
		})
	}
	all.Wait()
	close(stop)
	killed.Wait()
	until(t, "all connections are forgotten", func() bool {
		p.entry.mu.Lock()
		defer p.entry.mu.Unlock()
		p.exit.mu.Lock()
		defer p.exit.mu.Unlock()
		return p.entry.session.Conns() == 0 && p.exit.session.Conns() == 0 && len(p.entry.conns) == 0 && len(p.exit.conns) == 0
	})
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 200 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("not within 4 s: " + what)
}

// A connection that is refused, or reset at one end, is reset at the other.
func TestReset(t *testing.T) {
	p := newPair(t, 1)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	app := p.open(closed.Addr().String())
	app.SetDeadline(time.Now().Add(5 * time.Second))
	if n, err := app.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a refused connection: read %d, %v", n, err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	app = p.open(server.Addr().String())
	app.SetDeadline(time.Now().Add(5 * time.Second))
	c, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	if n, err := app.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a connection that the server reset: read %d, %v", n, err)
	}
	app = p.open(server.Addr().String())
	if c, err = server.Accept(); err != nil {
		t.Fatal(err)
	}
	app.(*net.TCPConn).SetLinger(0)
	app.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if n, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a connection that the application reset: read %d, %v", n, err)
	}
}

// A half-closed connection still carries the other direction.
func TestHalfClose(t *testing.T) {
	p := newPair(t, 2)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	app := p.open(server.Addr().String())
	app.SetDeadline(time.Now().Add(5 * time.Second))
	c, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	app.Write([]byte("question"))
	app.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "question" {
		t.Fatalf("the server reads %q, %v", got, err)
	}
	time.Sleep(50 * time.Millisecond)
	answer := bytes.Repeat([]byte("answer"), 1000)
	c.Write(answer)
	c.Close()
	if got, err := io.ReadAll(app); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("the application reads %d bytes, %v", len(got), err)
	}
}
