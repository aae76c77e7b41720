package connlimit

import (
	"net"
	"os"
	"testing"
	"time"
)

// open connects and returns both ends.
func open(t *testing.T, l *Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// closed reports whether the other end has closed a connection.
func closed(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return err != nil && !os.IsTimeout(err)
}

func listen(t *testing.T, b Bounds) *Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return New(l, b)
}

// A new connection closes the oldest of an unknown peer, and never one of a known peer.
func TestUnknown(t *testing.T) {
	for name, b := range map[string]Bounds{"all": {3, 10, 10, 0}, "of one address": {10, 3, 10, 0}} {
		l := listen(t, b)
		known, server := open(t, l)
		Identify(server, "operator")
		var clients []net.Conn
		for range 5 {
			c, _ := open(t, l)
			clients = append(clients, c)
		}
		for n, c := range clients {
			if got, want := closed(t, c), n < 2; got != want {
				t.Errorf("%s: connection %d of 5 is closed: %v", name, n, got)
			}
		}
		if closed(t, known) {
			t.Errorf("%s: the connection of a known peer is closed", name)
		}
	}
}

// A known peer has a bound of its own, and connections that end make room.
func TestKnown(t *testing.T) {
	l := listen(t, Bounds{10, 10, 2, 0})
	var clients []net.Conn
	for _, peer := range []string{"a", "a", "b", "a"} {
		c, s := open(t, l)
		Identify(s, peer)
		Identify(s, peer)
		clients = append(clients, c)
	}
	for n, c := range clients {
		if got, want := closed(t, c), n == 0; got != want {
			t.Errorf("connection %d is closed: %v", n, got)
		}
	}
	_, s := open(t, l)
	s.Close()
	Identify(s, "a")
	if l.all.Len() != 0 || len(l.of) != 2 || l.of["peer a"].Len() != 2 {
		t.Errorf("after all: %d unknown, %v", l.all.Len(), l.of)
	}
}

// Addresses of one /64 are one source.
func TestSource(t *testing.T) {
	at := func(s string) net.Addr { a, _ := net.ResolveTCPAddr("tcp", s); return a }
	for a, want := range map[string]string{"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1", "[2001:db8::5]:7": "2001:db8::/64"} {
		if got := source(at(a)); got != want {
			t.Errorf("%s: %s", a, got)
		}
	}
}

// No more connections than Young are in their handshakes: others wait until one is known, closed, or takes too long.
func TestYoung(t *testing.T) {
	l := listen(t, Bounds{100, 100, 100, 1})
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first := <-accepted
	for what, end := range map[string]func(net.Conn) error{
		"known":  func(c net.Conn) error { Identify(c, "a"); return nil },
		"closed": net.Conn.Close,
		"silent": func(net.Conn) error { time.Sleep(silentTime); return nil },
	} {
		dial()
		if err := end(first); err != nil {
			t.Fatal(err)
		}
		select {
		case first = <-accepted:
		case <-time.After(5 * time.Second):
			t.Fatalf("after the first connection is %s no other is accepted", what)
		}
	}
	for range 5 { // the machine may stop for silentTime at any moment
		sender := dial()
		first = <-accepted
		if _, err := sender.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		dial()
		if <-accepted; time.Since(began) > activeTime/2 {
			return
		}
	}
	t.Errorf("while one sends, the next is accepted at once")
}
