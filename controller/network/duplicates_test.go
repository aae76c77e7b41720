package network

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// fromConn is a connection with the address of its other end, of which what is read can be held back.
type fromConn struct {
	net.Conn
	from string
	cut  *atomic.Bool
}

func (c fromConn) RemoteAddr() net.Addr { return address(c.from) }

func (c fromConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.cut.Load() {
			return n, err
		}
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Of two switches with one datapath id the first stays connected while it answers, and the other is a fault that names both. When
// the first is gone, or no longer answers, the second takes its place, and the fault ends.
func TestTwoSwitchesWithOneID(t *testing.T) {
	for _, what := range []string{"the first ends", "the first does not answer", "the second no longer connects"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				s := New(Options{Key: []byte("key"), Plain: l})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				defer running.Wait()
				defer cancel()
				running.Go(func() { s.Serve(ctx) })
				running.Go(func() { s.Lead(ctx, 1) })
				// connect keeps a switch connected from an address.
				connect := func(from string) (stop func(), cut *atomic.Bool) {
					ctx, stop := context.WithCancel(ctx)
					cut = &atomic.Bool{}
					running.Go(func() {
						oftest.New(oftest.Options{DatapathID: 5}).Dial(ctx, 8*time.Second, func(ctx context.Context) (net.Conn, error) {
							ours, theirs := net.Pipe()
							select {
							case l.waiting <- fromConn{ours, from, cut}:
								return theirs, nil
							case <-ctx.Done():
								return nil, ctx.Err()
							}
						})
					})
					return stop, cut
				}
				is := func(when, at string, faults int) {
					t.Helper()
					synctest.Wait()
					status := s.Live().Status()
					if len(status.Switches) != 1 || status.Switches[0].Address != at {
						t.Errorf("%s: the switches are %+v, want the one at %s", when, status.Switches, at)
					}
					if got := s.Faults(); len(got) != faults {
						t.Errorf("%s: the faults are %+v, want %d", when, got, faults)
					}
				}
				const first, second = "192.0.2.1:1001", "192.0.2.2:2002"
				stopFirst, cutFirst := connect(first)
				time.Sleep(time.Second)
				stopSecond, _ := connect(second)
				time.Sleep(time.Minute)
				is("both connect", first, 1)
				if got := s.Faults()[0]; got.Kind != fabric.DuplicateID || got.Port.Switch != 5 ||
					!strings.Contains(got.Text, "switch 0000000000000005 is connected from "+first+", and a second one with this id from "+second+" is refused: give one of them another id") {
					t.Errorf("the fault is %+v", got)
				}
				counts := map[fabric.EventKind]int{}
				all, _ := s.Events()
				for _, e := range all {
					counts[e.Kind]++
				}
				if counts[fabric.SwitchAdded] != 1 || counts[fabric.SwitchChanged]+counts[fabric.SwitchRemoved] > 0 || counts[fabric.SwitchRefused] == 0 {
					t.Errorf("the events are %v", counts)
				}
				switch what {
				case "the first ends":
					stopFirst()
					time.Sleep(10 * time.Second) // the second tries each 8 s
					is("afterwards", second, 0)
				case "the first does not answer":
					stopSecond()
					cutFirst.Store(true)
					connect(second)
					time.Sleep(aliveTimeout + time.Second) // a session without an answer would end later
					is("afterwards", second, 0)
				default:
					stopSecond()
					time.Sleep(duplicateMemory)
					is("afterwards", first, 0)
				}
			})
		})
	}
}
