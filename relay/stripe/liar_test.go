package stripe

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// exitOf is the session of an exit with two streams, and two connections that the other agent has opened.
func exitOf(t testing.TB) (s *Session, conns [2]*Conn) {
	s = NewSession(Options{ConnWindow: 1 << 20, SessionWindow: 4 << 20, MaxPending: 1 << 20})
	for n := range uint32(2) {
		s.AddStream(n+1, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
		s.Writable(n+1, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
	}
	for n := range conns {
		if err := s.Receive(1, Frame{Kind: Open, Conn: uint32(2 * (n + 1))}, 0); err != nil {
			t.Fatal(err)
		}
		conns[n] = s.Conn(uint32(2 * (n + 1)))
		conns[n].Accept()
	}
	s.Events()
	return s, conns
}

// An agent that breaks the protocol of one connection loses that connection, with a reason; the other goes on.
func TestLiar(t *testing.T) {
	data := func(offset uint64, size int) Frame {
		return Frame{Kind: Data, Conn: 2, Offset: offset, Payload: make([]byte, size)}
	}
	end := func(f Frame) Frame { f.Fin = true; return f }
	for name, frames := range map[string][]Frame{
		"beyond the credit":       {data(initialWindow-10, 11)},
		"far beyond the credit":   {data(maxOffset, 1)},
		"overlaps a later chunk":  {data(100, 100), data(50, 60)},
		"overlaps a chunk inside": {data(100, 100), data(120, 10)},
		"begins in what was read": {data(0, 100), data(50, 100)},
		"after the end":           {end(data(0, 100)), data(100, 1)},
		"another end":             {end(data(0, 100)), end(data(100, 10))},
		"an end before the data":  {data(100, 100), end(data(0, 50))},
	} {
		t.Run(name, func(t *testing.T) {
			s, conns := exitOf(t)
			for _, f := range frames {
				if err := s.Receive(1, f, 0); err != nil {
					t.Fatalf("the stream ends: %v", err)
				}
				conns[0].Read()
			}
			reset := false
			for _, e := range s.Events() {
				reset = reset || e.Kind == EventReset && e.Conn == conns[0] && e.Reason != ""
			}
			if !reset || s.Conn(2) != nil {
				t.Error("the connection goes on")
			}
			if err := s.Receive(1, Frame{Kind: Data, Conn: 4, Payload: []byte("text")}, 0); err != nil {
				t.Fatal(err)
			}
			if got, _ := conns[1].Read(); string(got) != "text" {
				t.Errorf("the other connection has read %q", got)
			}
		})
	}
}

// A chunk that comes again is delivered once, and credit beyond all bounds is no more than much credit.
func TestReplay(t *testing.T) {
	s, conns := exitOf(t)
	read := 0
	for range 3 {
		for _, offset := range []uint64{0, 10} {
			if err := s.Receive(1, Frame{Kind: Data, Conn: 2, Offset: offset, Payload: make([]byte, 10)}, 0); err != nil {
				t.Fatal(err)
			}
		}
		for b, _ := conns[0].Read(); b != nil; b, _ = conns[0].Read() {
			read += len(b)
		}
	}
	if read != 20 {
		t.Errorf("read %d bytes, want 20", read)
	}
	for _, credit := range []uint64{maxOffset, 0, maxOffset - 1} {
		if err := s.Receive(1, Frame{Kind: Credit, Conn: 2, Offset: credit}, 0); err != nil {
			t.Fatal(err)
		}
	}
	conns[0].Write([]byte("text"))
	sent := false
	for _, f, ok := s.Next(0); ok; _, f, ok = s.Next(0) {
		sent = sent || f.Kind == Data && string(f.Payload) == "text"
		s.Writable(1, Estimate{RTT: time.Millisecond, Rate: 1e6})
	}
	if !sent {
		t.Error("nothing is sent")
	}
}

// An acknowledgement of frames that were not sent ends the stream on which it came.
func TestFalseAck(t *testing.T) {
	s, _ := exitOf(t)
	if err := s.Receive(1, Frame{Kind: Ack, Conn: 2, Offset: 1 << 40}, 0); !errors.Is(err, ErrFrame) {
		t.Errorf("error %v", err)
	}
	if err := s.Receive(1, Frame{Kind: Ack, Conn: 99, Offset: 1}, 0); err != nil {
		t.Errorf("of a stream that has ended: %v", err)
	}
}

// Random frames neither stop a session nor make it hold more than the credit that it gave.
func FuzzSession(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		s, _ := exitOf(t)
		random := rand.New(rand.NewPCG(a, b))
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(random.IntN(50)) * time.Millisecond
			frame := Frame{
				Kind: Kind(1 + random.IntN(int(lastKind))), Conn: uint32(random.IntN(12)), Offset: uint64(random.IntN(1 << 19)),
				Fin: random.IntN(8) == 0, Payload: make([]byte, random.IntN(3000)),
			}
			if random.IntN(20) == 0 {
				frame.Offset, frame.Conn = random.Uint64N(maxOffset), random.Uint32()
			}
			_ = s.Receive(uint32(1+random.IntN(2)), frame, now)
			for _, e := range s.Events() {
				if e.Kind == EventOpen {
					e.Conn.Accept()
				}
			}
			for range 4 {
				if n, _, ok := s.Next(now); ok {
					s.Writable(n, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
				}
			}
			s.Tick(now)
		}
		for _, c := range s.conns {
			if held := c.in.bytes; held > c.window {
				t.Fatalf("connection %d holds %d bytes with a window of %d", c.Number, held, c.window)
			}
		}
		if s.Conns() > 2*maxUnopened {
			t.Fatalf("%d connections", s.Conns())
		}
	})
}
