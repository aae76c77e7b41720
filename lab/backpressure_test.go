package lab_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A queue in the receiving host, before an IFB of 50 Mbit/s and 400 KB, without and with a router:
//
//	client ── server [ingress ─ IFB]              the sender sees the queue as its own
//	client ── router ── server [ingress ─ IFB]    it does not, as over a wire
//
// Without a router TCP's small-queue limit counts the packets in the other host's IFB, so that the
// queue never overflows. A router's ip_rcv releases the packet from the sending socket (skb_orphan).
// Every test network therefore needs a router.
func TestRouterBreaksBackPressure(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		without, with := retransmitted(t), retransmitted(t, "router")
		t.Logf("retransmitted: %d without a router, %d with one", without, with)
		if without > 0 {
			t.Errorf("%d segments were lost without a router: this kernel has no back-pressure through veth, so labs no longer need a router", without)
		}
		if with == 0 {
			t.Error("no segment was lost behind the router: the router does not stop the back-pressure")
		}
	})
}

// retransmitted returns the number of retransmissions of one unlimited flow through such a queue.
func retransmitted(t testing.TB, routers ...string) uint64 {
	topology := &lab.Topology{Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "server"}}}
	last := "client"
	for _, r := range routers {
		topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: r, Router: true})
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{last, r}})
		last = r
	}
	topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{last, "server"}})
	l := labtest.Up(t, topology)
	server := l.Node("server")
	for _, line := range []string{
		"ip link add ifb0 type ifb",
		"ip link set ifb0 up",
		"tc qdisc add dev ifb0 root tbf rate 50mbit burst 70000 limit 400000",
		"tc qdisc add dev " + last + " clsact",
		"tc filter add dev " + last + " ingress protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0",
	} {
		labtest.Run(t, server, "sh", "-c", line)
	}
	r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
		{Name: "f", From: "client", To: "server", Protocol: traffic.TCP, Schedule: traffic.Constant(traffic.Unlimited)},
	}, traffic.Options{Duration: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Flow("f").Total.DeliveredRate(); got < 40e6 {
		t.Errorf("the flow got %v: the test network does not work", unit.Rate(got))
	}
	return r.Flow("f").Total.Retransmits
}
