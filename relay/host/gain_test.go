package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
	"headgate.dev/headgate/unit"
)

// The estimate of a direct connection's rate is at most twice, and at least half of what a CUBIC connection beside the
// relay gets.
//
//	client, entry == exit, server
func TestDirectRate(t *testing.T) {
	labtest.NeedRoot(t)
	for _, c := range []struct {
		name    string
		loss    float64
		streams int     // 0 is as many as help
		gain    float64 // at least
	}{{"loss", 0.01, 0, 2}, {"clean", 0, 1, 0.5}} {
		t.Run(c.name, func(t *testing.T) {
			way := lab.Path{Spec: link.Spec{Rate: 50 * unit.Mbit, Delay: 10 * time.Millisecond}}
			lossy := way
			lossy.Loss.Probability = c.loss
			l := labtest.Up(t, &lab.Topology{
				Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "server"}},
				Links: []lab.LinkSpec{{Ends: [2]string{"client", "server"}, Forward: lossy, Back: way, Backend: lab.Emulator, Seed: 1}},
			})
			client, server := l.Node("client"), l.Node("server")
			at, err := server.Addr(false)
			if err != nil {
				t.Fatal(err)
			}
			received := discard(t, server)
			direct := received(t, client, netip.AddrPortFrom(at, 7))

			name := func(what string) string { return fmt.Sprintf("test-%d-%s", os.Getpid(), what) }
			listen, local := netip.MustParseAddrPort("127.0.0.1:8022"), netip.MustParseAddrPort("127.0.0.1:7")
			address, destinations := netip.AddrPortFrom(at, 8424), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			agents := []*lab.Cmd{
				startAgent(t, server, relay.Policy{Name: name("exit"), Accept: relay.Accept{Listen: address.String(), Destinations: destinations}}),
				startAgent(t, client, relay.Policy{
					Name: name("entry"), Exits: []relay.Exit{{Address: address, Destinations: destinations, Paths: []relay.Path{{Name: "any", Streams: c.streams, Congestion: []string{"cubic"}}}}},
					Forwards: []relay.Forward{{Listen: listen.String(), To: local}},
				}),
			}
			until(t, "the streams are open", func() bool {
				s, err := QueryStatus(name("entry"))
				return err == nil && s.Total.Streams >= cmp.Or(c.streams, firstStreams)
			})
			relayed := received(t, client, listen)
			for _, of := range []string{"entry", "exit"} {
				var ended []ConnectionStatus
				until(t, "the connection has a record", func() bool {
					ended, err = QueryEnded(name(of))
					return err == nil && len(ended) == 1
				})
				got := ended[0]
				if of == "exit" {
					if got.DirectRate != 0 || got.Gain != 0 {
						t.Errorf("the exit, which has sent nothing, estimates %d bit/s", got.DirectRate)
					}
					continue
				}
				t.Logf("direct %.1f Mbit/s, estimated %.1f; relayed %.1f, gain %.2f", direct/1e6, float64(got.DirectRate)/1e6, relayed/1e6, got.Gain)
				if rate := float64(got.DirectRate); rate < direct/2 || rate > 2*direct {
					t.Errorf("%.1f Mbit/s is estimated, and a direct connection gets %.1f", rate/1e6, direct/1e6)
				}
				if got.Gain < c.gain {
					t.Errorf("the gain is %.2f, want %.2f at least", got.Gain, c.gain)
				}
			}
			for _, c := range agents {
				if err := errors.Join(c.Process.Signal(os.Interrupt), c.Wait()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// discard discards what connections to port 7 of a node send. It returns a function that sends on a CUBIC connection
// for 2.5 seconds, and returns the rate at which all that was sent has arrived.
func discard(t *testing.T, n *lab.Node) func(t *testing.T, from *lab.Node, to netip.AddrPort) float64 {
	var listener net.Listener
	do(t, n, func() (err error) { listener, err = net.Listen("tcp", ":7"); return err })
	t.Cleanup(func() { listener.Close() })
	sizes := make(chan int64, 1)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			size, _ := io.Copy(io.Discard, c)
			c.Close()
			sizes <- size
		}
	}()
	return func(t *testing.T, from *lab.Node, to netip.AddrPort) float64 {
		var c net.Conn
		do(t, from, func() (err error) {
			cubic := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, raw syscall.RawConn) error {
				return setCongestion(raw, "cubic")
			}}
			c, err = cubic.Dial("tcp", to.String())
			return err
		})
		defer c.Close()
		began := time.Now()
		data := make([]byte, 64<<10)
		for time.Since(began) < 2500*time.Millisecond {
			if _, err := c.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		c.(*net.TCPConn).CloseWrite()
		return 8 * float64(<-sizes) / time.Since(began).Seconds()
	}
}

// No estimate is made where the figures cannot tell.
func TestNoDirectRate(t *testing.T) {
	k := &conn{link: &Link{observed: observed{direct: directPath{name: "a", rtt: 10 * time.Millisecond, segment: 1448, sent: 5e6}}}}
	k.link.observed.direct.loss.Add(time.Second, 5e6, 5e4, 10*time.Millisecond, true)
	whole := ConnectionStatus{Sent: 4e6, Age: time.Second, Paths: []stripe.PathBytes{{Path: "a", Sent: 4e6}}}
	for _, c := range []struct {
		name   string
		change func(*ConnectionStatus, *conn)
		known  bool
	}{
		{"a whole connection", func(*ConnectionStatus, *conn) {}, true},
		{"few bytes", func(c *ConnectionStatus, _ *conn) { c.Sent = 999_999 }, false},
		{"few bytes arrived", func(c *ConnectionStatus, _ *conn) { c.Unacknowledged = 3_500_000 }, false},
		{"more received", func(c *ConnectionStatus, _ *conn) { c.Received = 4_000_001 }, false},
		{"short", func(c *ConnectionStatus, _ *conn) { c.Age = 99 * time.Millisecond }, false},
		{"over other paths", func(_ *ConnectionStatus, k *conn) { k.direct.before = 4_500_000 }, false},
		{"often idle", func(_ *ConnectionStatus, k *conn) { k.direct.seconds, k.direct.idle = 10, 2 }, false},
		{"idle once", func(_ *ConnectionStatus, k *conn) { k.direct.seconds, k.direct.idle = 10, 1 }, true},
		{"never with CUBIC", func(_ *ConnectionStatus, k *conn) { k.link.observed.direct.loss = stripe.LossMeter{} }, false},
		{"an unknown path", func(_ *ConnectionStatus, k *conn) { k.link.observed.direct.name = "" }, false},
	} {
		before, was, got := k.direct, k.link.observed, whole
		c.change(&got, k)
		k.estimateDirect(&got)
		k.direct, k.link.observed = before, was
		if (got.DirectRate > 0) != c.known || (got.Gain > 0) != c.known {
			t.Errorf("%s: %d bit/s, gain %g", c.name, got.DirectRate, got.Gain)
		}
	}
}

// The window is the part of the maximum that tcp_adv_win_scale leaves for data.
func TestWindowOf(t *testing.T) {
	for _, c := range []struct {
		memory, scale string
		want          int
	}{
		{"4096\t131072\t6291456\n", "1\n", 3 << 20}, {"4096 131072 6291456", "2", 6291456 * 3 / 4}, {"4096 131072 6291456", "-2", 6291456 / 4},
		{"4096 131072 6291456", "0", 6291456}, {"4096 131072 6291456", "", 3 << 20}, {"", "1", 0}, {"a b c", "1", 0},
	} {
		if got := windowOf([]byte(c.memory), []byte(c.scale)); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.memory, c.scale, got, c.want)
		}
	}
}
