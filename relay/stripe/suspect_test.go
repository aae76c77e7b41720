package stripe

import (
	"testing"
	"time"
)

// A stream without progress is suspect after three round-trip times: not while its path goes on and needs longer for
// what is on the way, and not without a better one.
func TestSuspect(t *testing.T) {
	const ms = time.Millisecond
	const chunk = 64 << 10
	e := Estimate{RTT: 100 * ms, Rate: 1e6}
	for _, c := range []struct {
		name     string
		sent     int  // chunks on the way on the stalled stream, besides 10 on the other of its path
		goesOn   bool // the path's other stream has a chunk acknowledged each 100 ms: 640 kB/s
		another  bool // there is another path
		suspects time.Duration
	}{
		{"a dead path beside another", 10, false, true, 300 * ms},
		{"one stream of a fast path", 1, true, false, 300 * ms},
		// 30 chunks at 655 kB/s
		{"one stream of a path that has become slow", 30, true, true, 3000 * ms},
		{"a dead path alone", 10, false, false, -1},
	} {
		s := NewSession(Options{Dialer: true, ConnWindow: 64 << 20, SessionWindow: 64 << 20, MaxPending: 64 << 20})
		names := []string{"a", "a", "b"}
		if !c.another {
			names = names[:2]
		}
		for n, name := range names {
			s.AddStream(uint32(n+1), e)
			s.SetPath(uint32(n+1), name)
		}
		conn := s.Open(nil)
		conn.credit = 64 << 20
		now := time.Duration(0)
		send := func(stream uint32, chunks int) {
			for range chunks {
				conn.Write(make([]byte, chunk))
				k := conn.pending[0]
				conn.pending, conn.pendingBytes = nil, 0
				conn.unacked = append(conn.unacked, k)
				s.sendChunk(s.streams[stream], k, now)
			}
		}
		acked := uint64(0)
		step := func() {
			now += 100 * ms
			if c.goesOn {
				acked++
				send(2, 1)
				if err := s.acknowledge(Frame{Kind: Ack, Conn: 2, Offset: acked}, now); err != nil {
					t.Fatal(err)
				}
			}
			s.Tick(now)
		}
		if c.goesOn {
			send(2, 1)
			for now < 3*time.Second { // the rate is known
				step()
			}
		} else {
			send(2, 10)
		}
		send(1, c.sent)
		began, at := now, time.Duration(-1)
		for now < began+10*time.Second && at < 0 {
			step()
			if s.Suspect(1) {
				at = now - began
			}
		}
		if at < c.suspects-200*ms || at > c.suspects+400*ms {
			t.Errorf("%s: suspect after %v, want %v", c.name, at, c.suspects)
		}
	}
}

// Without a stream that can take an acknowledgement, none is due.
func TestDeadline(t *testing.T) {
	s := NewSession(Options{Dialer: true, ConnWindow: 1 << 20, SessionWindow: 1 << 20, MaxPending: 1 << 20})
	s.AddStream(1, Estimate{RTT: time.Millisecond, Rate: 1e6})
	if err := s.Receive(1, Frame{Kind: Ping}, 0); err != nil {
		t.Fatal(err)
	}
	if at, ok := s.Deadline(); ok {
		t.Errorf("due at %v", at)
	}
	s.Writable(1, Estimate{})
	if at, ok := s.Deadline(); !ok || at != ackDelay {
		t.Errorf("due at %v, %v, want %v", at, ok, ackDelay)
	}
}
