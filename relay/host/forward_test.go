package host

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"headgate.dev/headgate/relay"
)

// A connection to a forwarded port goes direct while no stream to the exit is open, and is reset if its destination
// cannot be connected to.
func TestForwardDirect(t *testing.T) {
	d := NewDialer(newKey(t, "k", true), relay.Exit{Address: netip.MustParseAddrPort(closedPort(t)), Paths: []relay.Path{{Name: "a"}}}, options)
	for _, c := range []struct {
		name, to string
		exit     carrier
		works    bool
	}{{"a server", echo(t), d, true}, {"no server", closedPort(t), d, false}, {"no exit", echo(t), nil, true}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				forward(&applications{ctx: ctx}, l, func() carrier { return c.exit }, netip.MustParseAddrPort(c.to), slog.New(slog.DiscardHandler))
			}()
			var got []byte
			app, err := net.Dial("tcp", l.Addr().String())
			if err == nil { // else it was reset at once
				defer app.Close()
				got, err = exchanged(app, []byte("text"))
			}
			if works := err == nil && string(got) == "text"; works != c.works {
				t.Errorf("read %q, %v", got, err)
			}
			l.Close()
			<-done
		})
	}
}
