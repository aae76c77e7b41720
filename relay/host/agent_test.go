package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/relay"
)

func newKey(t *testing.T, key string, encrypt bool) *Auth {
	t.Helper()
	k, err := NewAuth(peerauth.Credentials{Key: []byte(strings.Repeat(key, 16))}, !encrypt)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A dialer carries connections to allowed destinations of an acceptor, refuses others, and opens its streams
// again after the acceptor was restarted.
func TestAgents(t *testing.T) {
	for _, encrypt := range []bool{true, false} {
		to := netip.MustParseAddrPort(echo(t))
		l, err := Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().String()
		serve := func(l net.Listener) *Acceptor {
			a := &Acceptor{Auth: newKey(t, "k", encrypt), Options: options, Accept: relay.Accept{Destinations: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Log: slog.New(slog.DiscardHandler)}
			go a.Serve(l)
			return a
		}
		a := serve(l)
		d := NewDialer(newKey(t, "k", encrypt), relay.Exit{Address: netip.MustParseAddrPort(at), Paths: []relay.Path{{Name: "any", Streams: 3}}}, options)
		d.Log = slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		carried := func(to netip.AddrPort) error {
			text := bytes.Repeat([]byte("text"), 50_000)
			got, err := through(t, d, to, text)
			if err == nil && !bytes.Equal(got, text) {
				err = errors.New("other bytes")
			}
			return err
		}
		until(t, "three streams are open", func() bool { return d.Streams() == 3 })
		if err := carried(to); err != nil {
			t.Errorf("encrypt %v: %v", encrypt, err)
		}
		if err := carried(netip.MustParseAddrPort("192.0.2.1:80")); err == nil {
			t.Error("a destination that is not allowed is connected to")
		}
		session := func() sessionID { d.mu.Lock(); defer d.mu.Unlock(); return d.now.id }
		before := session()
		l.Close()
		a.Close()
		if l, err = Listen(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		a = serve(l)
		until(t, "the streams are open again", func() bool { return session() != before && d.Streams() == 3 })
		if err := carried(to); err != nil {
			t.Errorf("encrypt %v, after a restart: %v", encrypt, err)
		}
		cancel()
		<-done
		l.Close()
		a.Close()
	}
}
