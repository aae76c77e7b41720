package host

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/relay"
)

// An agent that cannot open one of its listeners ends with the error, although another one accepts already.
func TestRunPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	p := relay.Policy{
		Accept:   relay.Accept{Listen: "127.0.0.1:0", Destinations: local},
		Exits:    []relay.Exit{{Address: netip.MustParseAddrPort(closedPort(t)), Destinations: local, Paths: []relay.Path{{Name: "a"}}}},
		Forwards: []relay.Forward{{Listen: taken.Addr().String(), To: netip.MustParseAddrPort("127.0.0.1:1")}},
	}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), p, newKey(t, "k", true), slog.New(slog.DiscardHandler), nil) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the agent does not end")
	}
}
