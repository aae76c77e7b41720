package stripe

import (
	"testing"
	"time"
)

// Data is used again only when no stream can be writing it any longer, whatever the other agent acknowledges.
func TestFree(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(s *Session, sent uint32) (acknowledged uint32)
		freed int
	}{
		"acknowledged after it was written": {func(s *Session, sent uint32) uint32 {
			s.Writable(sent, Estimate{})
			return sent
		}, 1},
		"acknowledged while it is written": {func(_ *Session, sent uint32) uint32 { return sent }, 0},
		"sent on a second stream": {func(s *Session, sent uint32) uint32 {
			s.RemoveStream(sent)
			for { // Open is sent again, too
				second, f, ok := s.Next(0)
				s.Writable(second, Estimate{})
				if !ok || f.Kind == Data {
					return second
				}
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			freed := 0
			s := NewSession(Options{ConnWindow: 1 << 20, SessionWindow: 1 << 20, MaxPending: 1 << 20, Free: func([]byte) { freed++ }})
			for n := range uint32(2) {
				s.AddStream(n+1, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
				s.Writable(n+1, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
			}
			conn := s.Open(nil)
			first, f, _ := s.Next(0)
			if f.Kind != Open {
				t.Fatalf("the first frame is %v", f.Kind)
			}
			s.Writable(first, Estimate{RTT: 10 * time.Millisecond, Rate: 1e6})
			conn.Write([]byte("text"))
			sent, f, _ := s.Next(0)
			if f.Kind != Data {
				t.Fatalf("the second frame is %v", f.Kind)
			}
			acknowledged := c.do(s, sent)
			if err := s.Receive(acknowledged, Frame{Kind: Ack, Conn: acknowledged, Offset: uint64(len(s.streams[acknowledged].sent))}, 0); err != nil {
				t.Fatal(err)
			}
			if len(conn.unacked) > 0 {
				t.Error("the chunk was not acknowledged")
			}
			if freed != c.freed {
				t.Errorf("%d chunks may be used again, want %d", freed, c.freed)
			}
		})
	}
}
