package e2e

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// A looped network of real Open vSwitch bridges is connected: hosts reach each other over IPv4 and IPv6, also after a bridge is
// gone, and what the bridges have is not changed again.
//
//	h1 - s1 - s2 - h2
//	      | \  |
//	h4 - s4 - s3 - h3
func TestFabricOpenVSwitch(t *testing.T) {
	labtest.NeedRoot(t)
	l, n := leadSwitches(t)
	ctx := t.Context()
	until := func(what string, is func() bool) { t.Helper(); waitUntil(t, what, is) }
	links := func(want int) func() bool {
		return func() bool { p := n.Plan(); return n.Settled() && p != nil && len(p.Topology.Links()) == want }
	}
	until("all links are found", links(10))
	ping := func() (missing []string) {
		for _, from := range []string{"h1", "h2", "h3", "h4"} {
			for _, to := range []string{"h1", "h2", "h3", "h4"} {
				for _, six := range []bool{false, true} {
					if from == to {
						continue
					}
					a, err := l.Node(to).Addr(six)
					if err != nil {
						t.Fatal(err)
					}
					if out, err := pingOnce(l.Node(from), a); err != nil {
						missing = append(missing, from+"->"+a.String()+": "+out)
					}
				}
			}
		}
		return missing
	}
	if missing := ping(); len(missing) > 0 {
		t.Errorf("no answer: %v", missing)
	}
	// Linux also asks its neighbours from its link-local address, some time later: the controller learns it when the host answers a
	// ping to all.
	for host, dev := range map[string]string{"h1": "s1", "h2": "s2", "h3": "s3", "h4": "s4"} {
		if out, err := l.Node(host).Command(t.Context(), "ping", "-c3", "-i0.2", "-W2", "ff02::1%"+dev).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	until("all addresses are known and it is settled", func() bool {
		hosts := n.Plan().Topology.Hosts()
		return n.Settled() && len(hosts) == 4 && !slices.ContainsFunc(hosts, func(h fabric.Host) bool { return len(h.Addrs) != 3 })
	})
	plans := n.Counters().Plans
	if missing := ping(); len(missing) > 0 {
		t.Errorf("no second answer: %v", missing)
	}
	if after := n.Counters().Plans; after != plans {
		t.Errorf("%d plans though nothing has changed", after-plans)
	}
	if out, err := l.Switch("s2").Command(ctx, "ovs-vsctl", "del-port", "s1-s3").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until("the link between s1 and s3 is down", links(8))
	if missing := ping(); len(missing) > 0 {
		t.Errorf("without the link between s1 and s3: no answer: %v", missing)
	}
}

// leadSwitches starts four bridges in a ring with a cable across, a host at each, and a loop that connects them.
func leadSwitches(t *testing.T) (*lab.Lab, *live.Network) {
	l := labtest.Up(t, switched("fabric", []string{"h1", "h2", "h3", "h4", "c"}, []string{"s1", "s2", "s3", "s4"},
		[][2]string{{"h1", "s1"}, {"h2", "s2"}, {"h3", "s3"}, {"h4", "s4"}, {"s1", "s2"}, {"s2", "s3"}, {"s3", "s4"}, {"s4", "s1"}, {"s1", "s3"}}))
	var listener net.Listener
	if err := l.Node("c").Do(func() (err error) { listener, err = net.Listen("tcp", ":6653"); return err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	n := live.New(ctx, live.Options{Key: []byte("key"), Generation: 1, Event: func(e fabric.Event) { t.Log(e.Kind, e.Text) }})
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				if err := n.Serve(c); err != nil && ctx.Err() == nil {
					t.Log(err)
				}
			})
		}
	})
	t.Cleanup(func() { cancel(); listener.Close(); serving.Wait() })
	return l, n
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 20 s it is not so that %s", what)
		}
	}
}

func pingOnce(from *lab.Node, to netip.Addr) (string, error) {
	out, err := from.Command(context.Background(), "ping", "-c1", "-W2", to.String()).CombinedOutput()
	return string(out), err
}
