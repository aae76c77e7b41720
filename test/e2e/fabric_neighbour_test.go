package e2e

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/lab/labtest"
)

// Hosts of a network of real Open vSwitch bridges confirm their neighbours without a controller: what they have resolved while there
// was one goes on for longer than Linux trusts it.
//
//	h1 - s1 - s2 - h2
func TestFabricNeighbours(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Up(t, switched("neighbours", []string{"h1", "h2", "c"}, []string{"s1", "s2"}, [][2]string{{"h1", "s1"}, {"h2", "s2"}, {"s1", "s2"}}))
	// A neighbour is stale after 0.5 to 1.5 times the first value, and asked for a second after it is used then.
	const short = `for d in /proc/sys/net/ipv4/neigh/* /proc/sys/net/ipv6/neigh/*; do
		echo 1000 >$d/base_reachable_time_ms && echo 1 >$d/delay_first_probe_time && echo 1 >$d/gc_stale_time || exit 1
	done`
	for _, h := range []string{"h1", "h2"} {
		if out, err := l.Node(h).Command(t.Context(), "sh", "-c", short).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var listener net.Listener
	if err := l.Node("c").Do(func() (err error) { listener, err = net.Listen("tcp", ":6653"); return err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	n := live.New(ctx, live.Options{Key: []byte("key"), Generation: 1})
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = n.Serve(c) })
		}
	})
	end := func() { cancel(); listener.Close(); serving.Wait() }
	t.Cleanup(end)
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after 20 s it is not so that %s", what)
			}
		}
	}
	until("the link is found", func() bool { p := n.Plan(); return n.Settled() && p != nil && len(p.Topology.Links()) == 2 })
	// Linux asks a neighbour from its link-local address. The controller learns it when the other host answers a ping to all.
	for host, dev := range map[string]string{"h1": "s1", "h2": "s2"} {
		if out, err := l.Node(host).Command(t.Context(), "ping", "-c3", "-i0.2", "-W2", "ff02::1%"+dev).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	pings := map[string]*strings.Builder{}
	var running sync.WaitGroup
	for _, six := range []bool{false, true} {
		to, err := l.Node("h2").Addr(six)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := pingOnce(l.Node("h1"), to); err != nil {
			t.Fatalf("no answer before the controller has ended: %s", out)
		}
		out := &strings.Builder{}
		pings[to.String()] = out
		c := l.Node("h1").Command(t.Context(), "ping", "-i", "0.2", "-c", "70", "-W", "1", to.String())
		c.Stdout, c.Stderr = out, out
		running.Go(func() { _ = c.Run() })
	}
	until("the addresses of the hosts are known", func() bool {
		p := n.Plan()
		if hosts := p.Topology.Hosts(); len(hosts) != 2 || len(hosts[0].Addrs) != 3 || len(hosts[1].Addrs) != 3 {
			return false
		}
		return n.Settled()
	})
	end()
	running.Wait()
	for to, out := range pings {
		if !strings.Contains(out.String(), "70 packets transmitted, 70 received") {
			t.Errorf("ping %s without a controller for 10 s: %s", to, out)
		}
	}
}
