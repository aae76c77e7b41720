package htb

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestQueueAfterAPause: the history of a queue does not affect packets after a pause. The test
// writes a history into the queue's state that would otherwise take a long flood, or a link
// that goes down while packets wait.
//
//	server (router: 2 Mbit/s) == router == client
func TestQueueAfterAPause(t *testing.T) {
	for _, c := range []struct {
		name  string
		been  func(q *queue)
		pause time.Duration
		burst int           // datagrams, without pauses
		every time.Duration // or the interval between them
	}{
		{"a flood of 100 MB", func(q *queue) { q.ShortAtBytes, q.Flooded, q.BoundBytes = q.ArrivedBytes-100<<20, 1, 25_000 }, 1200 * time.Millisecond, 150, 0},
		{"packets lost with the link", func(q *queue) { q.DepartedBytes = q.ArrivedBytes - q.BoundBytes }, 700 * time.Millisecond, 10, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := labtest.Rig(t, lab.RigOptions{})
			client, err := l.Node("client").Addr(false)
			if err != nil {
				t.Fatal(err)
			}
			tree, problems := group.Direction{Limit: 20 * unit.Mbit, Groups: []group.Group{{Name: "all", Default: true, Ceiling: group.Amount{Rate: 2 * unit.Mbit}}}}.Resolve("out", true)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if err := l.Node("server").Do(func() error {
				e := New()
				if _, err := e.Apply(shaper.Plan{Dev: "router", Out: &tree}); err != nil {
					return err
				}
				conn, err := net.ListenUDP("udp", nil)
				if err != nil {
					return err
				}
				defer conn.Close()
				send := func(n int, every time.Duration) error {
					for range n {
						if _, err := conn.WriteToUDPAddrPort(make([]byte, 1400), netip.AddrPortFrom(client, 5001)); err != nil {
							return err
						}
						time.Sleep(every)
					}
					return nil
				}
				drops := func() uint64 {
					st, err := e.Observe("router")
					if err != nil {
						t.Fatal(err)
					}
					return st.Out.Groups[0].Drops
				}
				if err := send(20, 0); err != nil { // so that the queue state is initialized
					return err
				}
				time.Sleep(200 * time.Millisecond)
				if err := with("router", func(_ *nl.Conn, k *kernel) error {
					s := k.sides[egress]
					minor := uint32(s.Record.Class(s.Record.Tree().Nodes[0]))
					var q queue
					if err := s.Maps[queues].Lookup(minor, &q); err != nil {
						return err
					}
					if q.BoundBytes == 0 || q.LeftAtNS == 0 {
						t.Fatalf("the queue state is not initialized: %+v", q)
					}
					c.been(&q)
					return s.Maps[queues].Put(minor, q)
				}); err != nil {
					return err
				}
				time.Sleep(c.pause)
				before := drops()
				if err := send(c.burst, c.every); err != nil {
					return err
				}
				if n := drops() - before; n > 0 {
					t.Errorf("%d of %d packets were dropped", n, c.burst)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
