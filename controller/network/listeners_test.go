package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
)

// Listeners follow the configuration: they are opened and closed, and an address that another program has is tried again.
func TestListeners(t *testing.T) {
	s := New(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(ctx) })
	defer serving.Wait()
	defer cancel()
	until := func(what string, is func([]ListenerStatus) bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !is(s.Listeners()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after 10 s it is not so that %s: %+v", what, s.Listeners())
			}
		}
	}
	// A peer is accepted if its channel is greeted.
	accepted := func(address string) error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = io.ReadFull(c, make([]byte, 8))
		return err
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := netip.MustParseAddrPort(busy.Addr().String())
	any := netip.MustParseAddrPort("127.0.0.1:0")
	s.Configure(&fabric.Config{AcceptUnknown: true, Listen: []fabric.Listener{{Address: any}, {Address: taken}}})
	until("one listener is open and one is not", func(l []ListenerStatus) bool {
		return len(l) == 2 && l[0].Err == nil && l[0].Address != any.String() && l[1].Err != nil
	})
	first := s.Listeners()[0].Address
	if err := accepted(first); err != nil {
		t.Errorf("%s: %v", first, err)
	}
	busy.Close()
	until("both are open", func(l []ListenerStatus) bool { return l[1].Err == nil })
	if err := accepted(taken.String()); err != nil {
		t.Errorf("%s: %v", taken, err)
	}
	s.Configure(&fabric.Config{AcceptUnknown: true, Listen: []fabric.Listener{{Address: taken}}})
	until("the first is closed", func(l []ListenerStatus) bool {
		return len(l) == 1 && errors.Is(closed(first), net.ErrClosed)
	})
	if err := accepted(taken.String()); err != nil {
		t.Errorf("the other listener: %v", err)
	}
	s.Configure(nil)
	until("the other is closed", func(l []ListenerStatus) bool { return len(l) == 0 && errors.Is(closed(taken.String()), net.ErrClosed) })
}

// closed returns net.ErrClosed if nothing listens at an address.
func closed(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return net.ErrClosed
	}
	c.Close()
	return nil
}
