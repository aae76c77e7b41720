package network

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/internal/pki"
)

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 10 s it is not so that %s", what)
		}
	}
}

// A switch without TLS at a listener that requires it, and one with TLS at a listener that has none, are refused with the remedy. What
// is no switch is not taken for one.
func TestOnlyOneHasTLS(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Template{Name: "controller", Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	config, err := pki.Server(own, authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{TLS: config, Plain: plain})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Serve(ctx) })
	defer running.Wait()
	defer cancel()
	s.Configure(&fabric.Config{AcceptUnknown: true, Listen: []fabric.Listener{{Address: netip.MustParseAddrPort("127.0.0.1:0"), TLS: true}}})
	var secure string
	waitFor(t, "the controller listens with TLS", func() bool {
		for _, l := range s.Listeners() {
			if l.TLS && l.Err == nil {
				secure = l.Address
			}
		}
		return secure != "" && !strings.HasSuffix(secure, ":0")
	})
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	for _, c := range []struct {
		what string
		dial func(context.Context) (net.Conn, error)
		want string
	}{
		{"without TLS", func(ctx context.Context) (net.Conn, error) { return dial(ctx, secure) },
			"the switch connects without TLS, and " + secure + " requires it: give the switch a certificate (\"headgate network certificate\"), and ssl:" + secure + " as its controller"},
		{"with TLS", func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", plain.Addr().String())
		}, "the switch connects with TLS, and " + plain.Addr().String() + " has none: give the switch tcp:" + plain.Addr().String() + " as its controller"},
		{"another program", func(ctx context.Context) (net.Conn, error) {
			c, err := dial(ctx, secure)
			if err == nil {
				_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			}
			return c, err
		}, "first record does not look like a TLS handshake"},
	} {
		ctx, stop := context.WithCancel(ctx)
		var dialing sync.WaitGroup
		dialing.Go(func() { oftest.New(oftest.Options{DatapathID: 7}).Dial(ctx, time.Second, c.dial) })
		waitFor(t, c.what+": an event says "+c.want, func() bool {
			all, _ := s.Events()
			return len(all) > 0 && strings.Contains(all[len(all)-1].Text, c.want)
		})
		stop()
		dialing.Wait()
	}
}
