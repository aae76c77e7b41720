package session

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// serve starts a server on any port of host, and stops it at the end of the test.
func serve(t *testing.T, host string, s *Server) Options {
	t.Helper()
	s.Log = slog.New(slog.DiscardHandler)
	if s.Caps == (Caps{}) {
		s.Caps = Default
	}
	if err := s.Listen(t.Context(), host+":0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return Options{Host: strings.Trim(host, "[]"), Port: int(s.Addr().Port()), Auth: s.Auth}
}

func dial(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var key = peerauth.Credentials{Key: []byte("0123456789abcdef")}

// Trains pass in both directions, over IPv4 and IPv6, with a key and without.
func TestTrains(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		for name, auth := range map[string]peerauth.Credentials{"key": key, "open": {}} {
			c := dial(t, serve(t, host, &Server{Auth: auth}))
			if c.MTU[probe.Out] != 1500 || c.MTU[probe.In] != 1500 || c.RTT <= 0 {
				t.Errorf("%s, %s: MTU %v, RTT %v", host, name, c.MTU, c.RTT)
			}
			for _, d := range probe.Directions {
				train := probe.Train{Purpose: "test", Parts: []probe.Part{{Count: 300, Size: 9000}, {Count: 50, Size: 200, Rate: 20e6, Pause: time.Millisecond}}}
				s, err := c.Send(t.Context(), d, train)
				if err != nil {
					t.Fatal(err)
				}
				if len(s.Sent) != 350 || len(s.Arrived) != 350 || s.Lost() != 0 || s.Parts[0].Size != 1500 || s.Arrived[349].Number != 349 {
					t.Errorf("%s, %s, %s: %d sent, %d arrived, %d lost, of %d bytes", host, name, d, len(s.Sent), len(s.Arrived), s.Lost(), s.Parts[0].Size)
				}
				t.Logf("%s, %s, %s: flaws %q", host, name, d, s.Flaws)
			}
			out, in, control := c.Spent()
			if out < 300*1514+50*214 || in < 300*1514+50*214 || control < 2000 {
				t.Errorf("spent %d, %d, %d", out, in, control)
			}
		}
	}
}

// Both ends reject a wrong key and a missing key.
func TestKeys(t *testing.T) {
	o := serve(t, "127.0.0.1", &Server{Auth: key})
	for name, auth := range map[string]peerauth.Credentials{"another key": {Key: []byte("0123456789abcdeX")}, "no key": {}} {
		o.Auth = auth
		if c, err := Dial(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%s: client was admitted", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	o = serve(t, "127.0.0.1", &Server{})
	o.Auth = key
	if c, err := Dial(t.Context(), o); err == nil {
		c.Close()
		t.Error("client accepts a server that does not know the key")
	} else {
		t.Logf("a server without a key: %v", err)
	}
}

// A server sends no more than its caps allow, whatever the client requests.
func TestCaps(t *testing.T) {
	caps := Caps{Bytes: 1_000_000, Rate: 40 * unit.Mbit, Time: 20 * time.Second}
	for name, train := range map[string]probe.Train{
		"too many bytes":     probe.Uniform("", 700, 1500, 0),
		"too long":           {Parts: []probe.Part{{Count: 1, Size: 100}, {Count: 1, Size: 100, Pause: 30 * time.Second}}},
		"too slow":           probe.Uniform("", 10, 1500, 1),
		"too slow to count":  probe.Uniform("", 4<<20, 1500, 1),
		"no packets":         probe.Uniform("", 0, 1500, 0),
		"too many packets":   probe.Uniform("", 1<<30, 1500, 0),
		"no parts":           {},
		"a pause of an hour": {Parts: []probe.Part{{Count: 1, Size: 100, Pause: 2 * time.Hour}}},
	} {
		c := dial(t, serve(t, "127.0.0.1", &Server{Caps: caps}))
		if _, err := c.Send(t.Context(), probe.In, train); err == nil {
			t.Errorf("%s: the server sends the train", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
		if _, err := c.Send(t.Context(), probe.In, probe.Uniform("", 10, 1500, 0)); err == nil {
			t.Errorf("%s: the session was not closed", name)
		}
	}
	// 40 Mbit/s are 5 MB/s: of 3 trains of 3 MB the second and third wait.
	caps.Bytes = 20_000_000
	c := dial(t, serve(t, "127.0.0.1", &Server{Caps: caps}))
	begun := time.Now()
	for range 3 {
		if _, err := c.Send(t.Context(), probe.In, probe.Uniform("", 2000, 1500, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took < 1900*time.Millisecond {
		t.Errorf("9 MB arrived within %v", took)
	}
	if _, err := c.Send(t.Context(), probe.In, probe.Uniform("", 4000, 1500, 0)); err == nil {
		t.Error("the server sends 6 MB within a second, with a cap of 5 MB/s")
	}
}

// One client measures at a time; the other client is notified that it waits.
func TestTurns(t *testing.T) {
	o := serve(t, "127.0.0.1", &Server{})
	first := dial(t, o)
	waits := make(chan int, 10)
	o.OnWait = func(n int) { waits <- n }
	second := make(chan error)
	go func() {
		c, err := Dial(context.Background(), o)
		if err == nil {
			c.Close()
		}
		second <- err
	}()
	select {
	case <-waits:
	case err := <-second:
		t.Fatalf("the second client did not wait: %v", err)
	}
	first.Close()
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// A cancelled Send returns at once, and a server that ends the session causes an error.
func TestDisconnect(t *testing.T) {
	o := serve(t, "127.0.0.1", &Server{})
	c := dial(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := c.Send(ctx, probe.In, probe.Train{Parts: []probe.Part{{Count: 1, Size: 100}, {Count: 1, Size: 100, Pause: 10 * time.Second}}}); err == nil || time.Since(begun) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	c.Close()
	s := &Server{Auth: key, Caps: Caps{Bytes: 1 << 30, Rate: unit.Gbit, Time: 300 * time.Millisecond}}
	c = dial(t, serve(t, "127.0.0.1", s))
	time.Sleep(400 * time.Millisecond)
	if _, err := c.Send(t.Context(), probe.Out, probe.Uniform("", 10, 1500, 0)); err == nil {
		t.Error("a session continues after its time cap")
	} else {
		t.Log(err)
	}
	if _, err := c.Send(t.Context(), probe.Out, probe.Uniform("", 10, 1500, 0)); err == nil {
		t.Error("a broken session continues")
	}
}

// Trains of two servers arrive at one socket, in one order, and at the same time although
// the round-trip times differ.
func TestRace(t *testing.T) {
	socket, err := NewSocket("udp")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	var clients []*Client
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		o := serve(t, host, &Server{Auth: key})
		o.Socket = socket
		clients = append(clients, dial(t, o))
	}
	for _, c := range clients {
		mean, deviation, err := c.RoundTrips(t.Context(), 20)
		if err != nil || mean <= 0 || mean > 50*time.Millisecond || deviation > 50*time.Millisecond {
			t.Errorf("round trips: mean %v, deviation %v: %v", mean, deviation, err)
		}
	}
	train := probe.Uniform("race", 400, 1000, 40e6) // 81 ms
	s, err := SendJoint(t.Context(), clients, []time.Duration{30 * time.Millisecond, 10 * time.Millisecond}, probe.Joint{Purpose: "race", Trains: []probe.Train{train, train}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Arrived) != 800 || len(s.Sent) != 2 || len(s.Sent[1]) != 400 {
		t.Fatalf("%d arrived", len(s.Arrived))
	}
	for i := 1; i < len(s.Arrived); i++ {
		// Two processors may take timestamps at once and queue the packets in the other
		// order.
		if s.Arrived[i].At < s.Arrived[i-1].At-int64(time.Millisecond) {
			t.Fatalf("arrival %d is earlier than the previous one", i)
		}
	}
	// The nearer sender started 20 ms later.
	ahead := slices.IndexFunc(s.Arrived, func(a probe.JointArrival) bool { return a.From == 1 })
	if ahead < 60 || ahead > 250 {
		t.Errorf("the second sender's first packet is number %d", ahead)
	}
	if of := s.Sender(1); of.Lost() != 0 || len(of.Arrived) != 400 {
		t.Errorf("%d packets of the second sender arrived", len(of.Arrived))
	}
}

// A train with flaws is sent again as far as the caps allow it. The rate is one that no sender keeps.
func TestRetriesWithinCaps(t *testing.T) {
	train := probe.Train{Purpose: "test", Parts: []probe.Part{{Count: 2000, Size: 1500, Rate: 10_000 * unit.Gbit}}}
	caps := Default
	caps.Bytes = 5 * train.Bytes() / 2
	o := serve(t, "127.0.0.1", &Server{Auth: key, Caps: caps})
	o.Caps = &caps
	c := dial(t, o)
	for _, d := range probe.Directions {
		before := c.left(d)
		s, err := c.Send(t.Context(), d, train)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		if sent := before - c.left(d); len(s.Flaws) == 0 || sent != 2*s.Bytes() {
			t.Errorf("%s: %s sent, flaws %q; want twice %s", d, sent, s.Flaws, s.Bytes())
		}
	}
}

// A train that is to be sent once is not sent again if it has flaws.
func TestSentOnce(t *testing.T) {
	train := probe.Train{Purpose: "test", Parts: []probe.Part{{Count: 2000, Size: 1500, Rate: 10_000 * unit.Gbit}}, Once: true}
	c := dial(t, serve(t, "127.0.0.1", &Server{Auth: key, Caps: Default}))
	for _, d := range probe.Directions {
		s, err := c.Send(t.Context(), d, train)
		if err != nil || len(s.Flaws) == 0 || s.Again != 0 {
			t.Errorf("%s: %s sent before, flaws %q: %v", d, s.Again, s.Flaws, err)
		}
	}
}

// A train with flaws is sent again as far as the limit of a measurement allows it, and the sample says how much that was.
func TestRetriesWithinLimit(t *testing.T) {
	train := probe.Train{Purpose: "test", Parts: []probe.Part{{Count: 2000, Size: 1500, Rate: 10_000 * unit.Gbit}}}
	c := dial(t, serve(t, "127.0.0.1", &Server{Auth: key, Caps: Default}))
	for _, d := range probe.Directions {
		for times, limit := range map[unit.Bytes]unit.Bytes{1: train.Bytes(), 2: 5 * train.Bytes() / 2, 3: 0} {
			c.Limit(limit)
			s, err := c.Send(t.Context(), d, train)
			if err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			if len(s.Flaws) == 0 || s.Again != (times-1)*s.Bytes() || s.AgainArrived > s.Again || times > 1 && s.AgainArrived == 0 {
				t.Errorf("%s: %s sent before, flaws %q; want the train of %s %d times", d, s.Again, s.Flaws, s.Bytes(), times)
			}
		}
	}
}
