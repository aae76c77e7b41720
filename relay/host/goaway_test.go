package host

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"headgate.dev/headgate/relay"
)

// An exit that another process replaces keeps the connections that it has, and the dialer opens further ones in another
// session: when the exit says that it goes away, and, if that is lost, when the dialer opens a stream that the other
// process does not know.
func TestGoAway(t *testing.T) {
	for _, said := range []bool{true, false} {
		quiet := slog.New(slog.DiscardHandler)
		var s sockets
		serve := func() (*Acceptor, net.Listener) {
			l, err := s.listen(t.Context(), "tcp", "127.0.0.1:0", prepare)
			if err != nil {
				t.Fatal(err)
			}
			a := &Acceptor{Auth: newKey(t, "k", true), Options: options, Accept: relay.Accept{Destinations: prefixes("127.0.0.0/8")}, Log: quiet}
			go a.Serve(l)
			return a, l
		}
		former, l := serve()
		d := NewDialer(newKey(t, "k", true), relay.Exit{Address: netip.MustParseAddrPort(l.Addr().String()), Paths: []relay.Path{{Name: "any", Streams: 2}}}, options)
		d.Log = quiet
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { d.Run(ctx); close(done) }()
		until(t, "the streams are open", func() bool { return d.Streams() == 2 })
		to := netip.MustParseAddrPort(echo(t))
		open := func() net.Conn {
			app, accepted := connected(t)
			if err := d.Carry(accepted, to); err != nil {
				t.Fatal(err)
			}
			return app
		}
		ask := func(app net.Conn, text string) {
			t.Helper()
			got := make([]byte, len(text))
			if _, err := io.WriteString(app, text); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(app, got); err != nil || string(got) != text {
				t.Fatalf("read %q, %v, want %q", got, err, text)
			}
		}
		standing := open()
		ask(standing, "before")

		link := d.link()
		s.released()
		next, nextListener := serve()
		l.Close()
		if said {
			former.goAway()
		} else { // a stream ends, and is opened again
			link.mu.Lock()
			for _, st := range link.streams {
				st.conn.Close()
				break
			}
			link.mu.Unlock()
		}
		carries := func(a *Acceptor) (n int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, one := range a.links {
				connections, _ := one.use()
				n += connections
			}
			return n
		}
		until(t, "the other process has streams", func() bool { return d.link() != link && d.Streams() == 2 })
		other := open()
		ask(other, "other")
		ask(standing, "still")
		if carries(former) != 1 || carries(next) != 1 {
			t.Errorf("the former process carries %d connections, the other one %d", carries(former), carries(next))
		}
		standing.Close()
		former.drain(t.Context())
		until(t, "the former session is closed", func() bool { return len(d.links()) == 1 })
		ask(other, "after")
		other.Close()
		d.drain()
		cancel()
		<-done
		nextListener.Close()
		next.Close()
		s.close()
	}
}
