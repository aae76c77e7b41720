package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// address returns the address of a server that serve started.
func address(t *testing.T, o Options) probe.Address {
	t.Helper()
	return probe.Address{Host: o.Host, Port: o.Port}
}

// sends returns a Measure function that sends full-size packets to the peer.
func sends(s *Server, packets int) func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
	return func(ctx context.Context, peer probe.Address, request json.RawMessage, say func(string)) (json.RawMessage, error) {
		c, err := Dial(ctx, Options{Host: peer.Host, Port: peer.Port, Auth: s.Auth, QueueTimeout: PeerQueueTimeout, Caps: &s.Caps})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		say("sending")
		sample, err := c.Send(ctx, probe.Out, probe.Uniform("test", packets, 1500, 0))
		if err != nil {
			return json.RawMessage(`"partly"`), err
		}
		return json.Marshal(map[string]any{"arrived": len(sample.Arrived), "request": request})
	}
}

// A server measures to its peers for a client, with its own key, and to no other host.
func TestAsk(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		b := serve(t, host, &Server{Auth: key})
		s := &Server{Auth: key, Peers: []probe.Address{address(t, b)}}
		s.Measure = sends(s, 300)
		a := serve(t, host, s)
		said := 0
		result, err := RequestMeasurement(t.Context(), a, address(t, b), json.RawMessage(`{"bytes":7}`), func(string) { said++ })
		if err != nil || string(result) != `{"arrived":300,"request":{"bytes":7}}` {
			t.Errorf("%s: %s, %v", host, result, err)
		}
		// The server itself, and the peer by another name or port, are not peers.
		for _, other := range []probe.Address{address(t, a), {Host: "localhost", Port: b.Port}, {Host: strings.Trim(host, "[]"), Port: 1}} {
			if _, err := RequestMeasurement(t.Context(), a, other, nil, nil); err == nil || !strings.Contains(err.Error(), other.String()+" is not a peer") {
				t.Errorf("%s to %s: %v", host, other, err)
			}
		}
		if _, err := RequestMeasurement(t.Context(), b, address(t, a), nil, nil); err == nil || !strings.Contains(err.Error(), "server has no peers: start it with --peer") {
			t.Errorf("a server without peers: %v", err)
		}
		// A client needs the shared key to request a measurement.
		a.Auth = peerauth.Credentials{Key: []byte("0123456789abcdeX")}
		if _, err := RequestMeasurement(t.Context(), a, address(t, b), nil, nil); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("another key: %v", err)
		}
	}
}

// A server's own caps bound what it sends to a peer, whatever the peer's caps are.
func TestAskCaps(t *testing.T) {
	b := serve(t, "127.0.0.1", &Server{Auth: key})
	s := &Server{Auth: key, Peers: []probe.Address{address(t, b)}, Caps: Caps{Bytes: 300_000, Rate: 8 * unit.Mbit, Time: 20 * time.Second}}
	s.Measure = sends(s, 300)
	a := serve(t, "127.0.0.1", s)
	result, err := RequestMeasurement(t.Context(), a, address(t, b), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "train of 454.2kB") || string(result) != `"partly"` {
		t.Errorf("300 packets with a cap of 300 kB: %s, %v", result, err)
	}
	// 8 Mbit/s are 1 MB/s.
	s.Caps.Bytes = 10_000_000
	s.Measure = func(ctx context.Context, peer probe.Address, _ json.RawMessage, _ func(string)) (json.RawMessage, error) {
		c, err := Dial(ctx, Options{Host: peer.Host, Port: peer.Port, Auth: key, Caps: &s.Caps})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		for range 3 {
			if _, err := c.Send(ctx, probe.Out, probe.Uniform("test", 600, 1500, 0)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	begun := time.Now()
	if _, err := RequestMeasurement(t.Context(), a, address(t, b), nil, nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < 1900*time.Millisecond {
		t.Errorf("2.7 MB were sent within %v, faster than 1 MB/s", took)
	}
	s.Caps.Time = time.Second
	if _, err := RequestMeasurement(t.Context(), a, address(t, b), nil, nil); err == nil || !strings.Contains(err.Error(), "1s") {
		t.Errorf("a measurement of two seconds with a time cap of one: %v", err)
	}
}

// Two servers that measure to each other at the same time both succeed, one after the
// other.
func TestAskDeadlock(t *testing.T) {
	var at [2]atomic.Int32 // measurements at each server, as client or as server
	var servers [2]*Server
	var options [2]Options
	for i := range servers {
		servers[i] = &Server{Auth: key}
		options[i] = serve(t, "127.0.0.1", servers[i])
	}
	tries := atomic.Int32{}
	for i, s := range servers {
		s.Peers = []probe.Address{address(t, options[1-i])}
		s.Measure = func(ctx context.Context, peer probe.Address, _ json.RawMessage, _ func(string)) (json.RawMessage, error) {
			tries.Add(1)
			time.Sleep(300 * time.Millisecond) // until the other server holds its own turn
			c, err := Dial(ctx, Options{Host: peer.Host, Port: peer.Port, Auth: key, QueueTimeout: PeerQueueTimeout})
			if err != nil {
				return nil, err
			}
			defer c.Close()
			for end := range at {
				if at[end].Add(1) != 1 {
					t.Error("two measurements use one host at the same time")
				}
				defer at[end].Add(-1)
			}
			_, err = c.Send(ctx, probe.Out, probe.Uniform("test", 100, 1500, 0))
			return nil, err
		}
	}
	ends := make(chan error, 2)
	for i := range servers {
		go func() {
			_, err := RequestMeasurement(t.Context(), options[i], address(t, options[1-i]), nil, func(string) {})
			ends <- err
		}()
	}
	for range servers {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if n := tries.Load(); n < 3 {
		t.Errorf("%d tries: the measurements did not overlap, so the test is void", n)
	}
}

// A client that disconnects cancels its measurement, and the turn is free.
func TestAskDisconnect(t *testing.T) {
	b := serve(t, "127.0.0.1", &Server{Auth: key})
	s := &Server{Auth: key, Peers: []probe.Address{address(t, b)}}
	begun, ended := make(chan bool, 1), make(chan error, 1)
	s.Measure = func(ctx context.Context, _ probe.Address, _ json.RawMessage, _ func(string)) (json.RawMessage, error) {
		begun <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	a := serve(t, "127.0.0.1", s)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := RequestMeasurement(ctx, a, address(t, b), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled client gets %v", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the measurement was not cancelled")
	}
	dial(t, a)
}

// Text from the other host becomes one line without control characters.
func TestPrintable(t *testing.T) {
	if got := printable("a\n\x1b[2Jb\tc é"); got != "a [2Jb c é" {
		t.Errorf("%q", got)
	}
}

// A client that gives up leaves the queue at once, and the next client gets its turn.
func TestPatience(t *testing.T) {
	o := serve(t, "127.0.0.1", &Server{Auth: key})
	first := dial(t, o)
	o.QueueTimeout = PeerQueueTimeout
	if c, err := Dial(t.Context(), o); !errors.Is(err, ErrBusy) {
		c.Close()
		t.Fatalf("a client without patience gets %v, want ErrBusy", err)
	}
	first.Close()
	begun := time.Now()
	o.QueueTimeout = 0
	dial(t, o)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the next turn starts after %v", took)
	}
}
