package stripe

import (
	"slices"
	"testing"
	"time"
)

// A connection is described while it is opened, while bytes wait at its sender and for earlier ones at its receiver,
// and after its end; bytes are counted by path.
func TestInfo(t *testing.T) {
	a := NewSession(Options{Dialer: true, ConnWindow: 1 << 20, SessionWindow: 1 << 20, MaxPending: 1 << 20})
	b := NewSession(Options{ConnWindow: 1 << 20, SessionWindow: 1 << 20, MaxPending: 1 << 20})
	estimate := Estimate{RTT: time.Millisecond, Rate: 1e6, Unsent: 7}
	for number, path := range map[uint32]string{1: "fibre", 2: "radio"} {
		for _, s := range []*Session{a, b} {
			s.AddStream(number, estimate)
			s.SetPath(number, path)
		}
	}
	now := time.Duration(0)
	next := func(s *Session, on uint32) (f Frame) {
		t.Helper()
		s.Writable(on, estimate)
		number, f, ok := s.Next(now)
		if !ok || number != on {
			t.Fatalf("next frame: %+v on stream %d, %v", f, number, ok)
		}
		return f
	}
	pass := func(to *Session, on uint32, f Frame) {
		t.Helper()
		if err := to.Receive(on, f, now); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, got, want ConnInfo) {
		t.Helper()
		if paths := got.Paths; !slices.Equal(paths, want.Paths) {
			t.Errorf("%s: paths %+v, want %+v", what, paths, want.Paths)
		}
		got.Paths, want.Paths = nil, nil
		if got.State != want.State || got.Sent != want.Sent || got.Received != want.Received || got.Waiting != want.Waiting ||
			got.Unacknowledged != want.Unacknowledged || got.Unread != want.Unread || got.Reordering != want.Reordering {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	c := a.Open([]byte("to"))
	c.Write(make([]byte, 100))
	c.Write(make([]byte, 200))
	check("opened", c.Info(), ConnInfo{State: Opening, Sent: 300, Waiting: 300})
	pass(b, 1, next(a, 1)) // Open
	d := b.Events()[0].Conn
	d.Accept()
	first, second := next(a, 1), next(a, 2)
	check("sent", c.Info(), ConnInfo{State: Opening, Sent: 300, Unacknowledged: 300})
	pass(b, 2, second)
	check("out of order", d.Info(), ConnInfo{State: Established, Reordering: 200, Paths: []PathBytes{{Path: "radio", Received: 200}}})
	pass(b, 1, first)
	both := []PathBytes{{Path: "radio", Received: 200}, {Path: "fibre", Received: 100}}
	check("in order", d.Info(), ConnInfo{State: Established, Unread: 300, Paths: both})
	if i, ok := a.Stream(1); !ok || i.Unacknowledged != 100 || i.Estimate != estimate || i.Sent != 0 || i.Suspect || i.Retired {
		t.Errorf("stream: %+v, %v", i, ok)
	}
	now = time.Second
	for range 3 { // Opened, and an acknowledgement for each stream
		pass(a, 1, next(b, 1))
	}
	check("acknowledged", c.Info(), ConnInfo{State: Established, Sent: 300, Paths: []PathBytes{{Path: "fibre", Sent: 100}, {Path: "radio", Sent: 200}}})
	if i, _ := a.Stream(2); i.Sent != 200 || i.Unacknowledged != 0 {
		t.Errorf("stream: %+v", i)
	}
	for data, _ := d.Read(); data != nil; data, _ = d.Read() {
		d.Consumed(len(data), now)
	}
	c.CloseWrite()
	check("half-closed", c.Info(), ConnInfo{State: Closing, Sent: 300, Waiting: 0, Paths: c.Info().Paths})
	d.Reset("no")
	check("ended", d.Info(), ConnInfo{State: Ended, Received: 300, Paths: both})
	if _, ok := a.Stream(3); ok {
		t.Error("stream 3 exists")
	}
}
