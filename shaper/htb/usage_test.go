package htb_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// TestUnmet checks the detection of unmet guarantees while the rest of a link of 40 Mbit/s is
// overloaded with datagrams:
//
//	server == router == client
//	  groups small (TCP that writes now and then), large
//
// A sender within its guarantee has no unmet time, however large its writes are; a sender whose
// group gets a quarter of its guarantee has unmet time throughout.
func TestUnmet(t *testing.T) {
	labtest.NeedRoot(t)
	const limit, seconds = 40 * unit.Mbit, 6
	for _, c := range []struct {
		guarantee unit.Rate
		part      float64 // the sent part of the guarantee
		write     int     // bytes
		starve    bool
	}{
		{2 * unit.Mbit, 0.8, 128 << 10, false},
		{20 * unit.Mbit, 0.95, 256 << 10, false},
		{20 * unit.Mbit, 0.5, 1 << 10, false},
		{512 * unit.Kbit, 0.8, 16 << 10, false},
		{20 * unit.Mbit, 0.8, 128 << 10, true},
		{512 * unit.Kbit, 0.8, 4 << 10, true},
	} {
		t.Run(fmt.Sprintf("%v of %v in %v, starved %v", c.part, c.guarantee, unit.Bytes(c.write), c.starve), func(t *testing.T) {
			t.Parallel()
			labtest.Try(t, func(t *labtest.Check) {
				l := labtest.Rig(t, lab.RigOptions{RTT: 2 * time.Millisecond})
				server, e := l.Node("server"), htb.New()
				tree, problems := group.Direction{Limit: limit, Groups: []group.Group{
					{Name: "small", Guarantee: group.Amount{Rate: c.guarantee}, Match: []group.Selector{{DPort: []group.PortRange{{First: 5001, Last: 5001}}}}},
					{Name: "large", Guarantee: group.Amount{Rate: limit - c.guarantee}, Default: true},
				}}.Resolve("out", true)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: &tree}
				observe := func() (g shaper.GroupState, counters usage.Counters) {
					err := server.Do(func() error {
						st, err := e.Observe("router")
						if err == nil {
							g = st.Out.Groups[0]
							counters = usage.Counters{
								Bytes: g.Bytes, Packets: g.Packets, Backlog: g.BacklogBytes, QueuedFor: g.QueuedFor, Queued: g.QueuedBytes, At: st.Out.At,
							}
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					return g, counters
				}
				if err := server.Do(func() error { _, err := e.Apply(plan); return err }); err != nil {
					t.Fatal(err)
				}
				if g, _ := observe(); c.starve {
					// Another program changes the class.
					labtest.Run(t, server, "tc", "class", "change", "dev", "router", "classid", g.Class, "htb",
						"rate", fmt.Sprint(int64(c.guarantee)/4), "ceil", fmt.Sprint(int64(c.guarantee)/4))
				}
				ctx, stop := context.WithTimeout(t.Context(), (seconds+3)*time.Second)
				defer stop()
				done := make(chan error, 2)
				go func() { done <- writeAtRate(ctx, l, float64(c.guarantee)/8*c.part, c.write) }()
				go func() {
					_, err := traffic.Run(ctx, l.Host, []traffic.Flow{{Name: "large", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(60 * unit.Mbit)}},
						traffic.Options{Duration: (seconds + 2) * time.Second})
					done <- err
				}()
				time.Sleep(1500 * time.Millisecond)
				unmet := 0
				var said []string // details of each second
				_, was := observe()
				for range seconds {
					time.Sleep(time.Until(was.At.Add(time.Second)))
					_, now := observe()
					if usage.Unmet(was, now, c.guarantee) {
						unmet++
					}
					said = append(said, fmt.Sprintf("%.0f kbit/s, %d ms with a queue of which %d bytes left, %d wait",
						usage.Rate(was, now)/1e3, (now.QueuedFor-was.QueuedFor).Milliseconds(), now.Queued-was.Queued, now.Backlog))
					was = now
				}
				if g, _ := observe(); !c.starve && g.Drops > 0 {
					t.Errorf("%d packets of a sender within its guarantee were dropped", g.Drops)
				}
				stop()
				if want := map[bool]int{true: seconds}[c.starve]; unmet != want {
					t.Errorf("%d seconds of %d are reported as unmet, want %d: %v", unmet, seconds, want, said)
				}
				for range 2 {
					if err := <-done; err != nil && ctx.Err() == nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// writeAtRate writes pieces over TCP at a rate in bytes per second until ctx ends.
func writeAtRate(ctx context.Context, l *lab.Lab, rate float64, piece int) error {
	var listener net.Listener
	to, err := l.Node("client").Addr(false)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(to, 5001)
	if err := l.Node("client").Do(func() (err error) { listener, err = net.Listen("tcp4", at.String()); return err }); err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	var c net.Conn
	if err := l.Node("server").Do(func() (err error) { c, err = net.DialTimeout("tcp4", at.String(), 5*time.Second); return err }); err != nil {
		return err
	}
	defer c.Close()
	context.AfterFunc(ctx, func() { c.Close() })
	every := time.Duration(float64(piece) / rate * 1e9)
	text := make([]byte, piece)
	for next := time.Now(); ctx.Err() == nil; next = next.Add(every) {
		time.Sleep(time.Until(next))
		if _, err := c.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// TestIdleHasNoDelay: an idle group has no queue delay, whatever the sojourn time of its last
// packet.
func TestIdleHasNoDelay(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Rig(t, lab.RigOptions{RTT: time.Millisecond})
	server, e := l.Node("server"), htb.New()
	plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: smallAndLarge(t, 10*unit.Mbit)}
	if err := server.Do(func() error { _, err := e.Apply(plan); return err }); err != nil {
		t.Fatal(err)
	}
	delay := func() (d time.Duration) {
		if err := server.Do(func() error {
			st, err := e.Observe("router")
			if err == nil {
				d = st.Out.Groups[1].QueueDelay
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	_, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{{Name: "large", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(20 * unit.Mbit)}},
		traffic.Options{Duration: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	busy := delay()
	time.Sleep(1500 * time.Millisecond)
	if idle := delay(); idle != 0 {
		t.Errorf("a group that was idle for 1.5 s has a queue delay of %v (%v right after sending)", idle, busy)
	}
}
