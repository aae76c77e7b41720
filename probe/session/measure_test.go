package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// address is where a server of serve is.
func address(t *testing.T, o Options) probe.Address {
	t.Helper()
	return probe.Address{Host: o.Host, Port: o.Port}
}

// sends is a Measure that sends so many full packets to the peer, of whom nothing is
// known but the key.
func sends(s *Server, packets int) func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
	return func(ctx context.Context, peer probe.Address, request json.RawMessage, say func(string)) (json.RawMessage, error) {
		c, err := Dial(ctx, Options{Host: peer.Host, Port: peer.Port, Auth: s.Auth, Patience: TurnPatience, Caps: &s.Caps})
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

// A server measures to its peers for a client, with its own key, and to no one else.
func TestAsk(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		b := serve(t, host, &Server{Auth: key})
		s := &Server{Auth: key, Peers: []probe.Address{address(t, b)}}
		s.Measure = sends(s, 300)
		a := serve(t, host, s)
		said := 0
		result, err := Ask(t.Context(), a, address(t, b), json.RawMessage(`{"bytes":7}`), func(string) { said++ })
		if err != nil || string(result) != `{"arrived":300,"request":{"bytes":7}}` {
			t.Errorf("%s: %s, %v", host, result, err)
		}
		// Neither to itself, nor to the peer by another name or port.
		for _, other := range []probe.Address{address(t, a), {Host: "localhost", Port: b.Port}, {Host: strings.Trim(host, "[]"), Port: 1}} {
			if _, err := Ask(t.Context(), a, other, nil, nil); err == nil || !strings.Contains(err.Error(), "does not measure to "+other.String()) {
				t.Errorf("%s to %s: %v", host, other, err)
			}
		}
		if _, err := Ask(t.Context(), b, address(t, a), nil, nil); err == nil || !strings.Contains(err.Error(), "measures to no other: start it with --peer") {
			t.Errorf("a server without peers: %v", err)
		}
		// Only those who may measure may ask.
		a.Auth = Auth{Key: []byte("0123456789abcdeX")}
		if _, err := Ask(t.Context(), a, address(t, b), nil, nil); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("another key: %v", err)
		}
	}
}

// What a server sends to a peer is within its own caps, whatever the peer's are.
func TestAskCaps(t *testing.T) {
	b := serve(t, "127.0.0.1", &Server{Auth: key})
	s := &Server{Auth: key, Peers: []probe.Address{address(t, b)}, Caps: Caps{Bytes: 300_000, Rate: 8 * unit.Mbit, Time: 20 * time.Second}}
	s.Measure = sends(s, 300)
	a := serve(t, "127.0.0.1", s)
	result, err := Ask(t.Context(), a, address(t, b), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the train has 454.2kB") || string(result) != `"partly"` {
		t.Errorf("300 packets of at most 300 kB: %s, %v", result, err)
	}
	// 8 Mbit/s are 1 MB a second.
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
	if _, err := Ask(t.Context(), a, address(t, b), nil, nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < 1900*time.Millisecond {
		t.Errorf("2.7 MB left within %v", took)
	}
	s.Caps.Time = time.Second
	if _, err := Ask(t.Context(), a, address(t, b), nil, nil); err == nil || !strings.Contains(err.Error(), "1s") {
		t.Errorf("a measurement of two seconds in one: %v", err)
	}
}

// Two servers that want each other at once get what they want, one after the other.
func TestAskCrosswise(t *testing.T) {
	var at [2]atomic.Int32 // who measures at each server, as client or server
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
			time.Sleep(300 * time.Millisecond) // until the other has its own turn
			c, err := Dial(ctx, Options{Host: peer.Host, Port: peer.Port, Auth: key, Patience: TurnPatience})
			if err != nil {
				return nil, err
			}
			defer c.Close()
			for end := range at {
				if at[end].Add(1) != 1 {
					t.Error("two measure through one host at once")
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
			_, err := Ask(t.Context(), options[i], address(t, options[1-i]), nil, func(string) {})
			ends <- err
		}()
	}
	for range servers {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if n := tries.Load(); n < 3 {
		t.Errorf("%d tries: the two did not meet, and nothing was tried here", n)
	}
}

// A client that goes away takes what is done for it along, and the turn is free.
func TestAskVanishing(t *testing.T) {
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
	if _, err := Ask(ctx, a, address(t, b), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up gets %v", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the measurement goes on")
	}
	dial(t, a)
}

// The other host's text is one line of text.
func TestPrintable(t *testing.T) {
	if got := printable("a\n\x1b[2Jb\tc é"); got != "a [2Jb c é" {
		t.Errorf("%q", got)
	}
}

// Who gives up while it waits leaves the queue at once: its turn costs nobody time.
func TestGivingUp(t *testing.T) {
	o := serve(t, "127.0.0.1", &Server{Auth: key})
	first := dial(t, o)
	o.Patience = TurnPatience
	if c, err := Dial(t.Context(), o); !errors.Is(err, ErrBusy) {
		c.Close()
		t.Fatalf("who has no patience gets %v", err)
	}
	first.Close()
	begun := time.Now()
	o.Patience = 0
	dial(t, o)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the next turn comes after %v", took)
	}
}
