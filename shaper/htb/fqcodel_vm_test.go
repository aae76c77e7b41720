//go:build vm

package htb_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// Tests that need a kernel with fq_codel (make test-vm).

const dev = "router"

type host struct {
	*testing.T
	lab  *lab.Lab
	node *lab.Node
}

func newHost(t *testing.T) host {
	l := labtest.Rig(t, lab.RigOptions{})
	return host{t, l, l.Node("server")}
}

func (h host) tc(line string) string {
	h.Helper()
	return labtest.Run(h.T, h.node, "tc", strings.Fields(line)...)
}

func (h host) apply(p shaper.Plan) (changes []shaper.Change) {
	h.Helper()
	err := h.node.Do(func() (err error) { changes, err = htb.New().Apply(p); return err })
	if err != nil {
		h.Fatal(err)
	}
	return changes
}

func (h host) observe() (st shaper.State) {
	h.Helper()
	if err := h.node.Do(func() (err error) { st, err = htb.New().Observe(dev); return err }); err != nil {
		h.Fatal(err)
	}
	return st
}

// qdiscs returns the device's qdiscs, without reference counts.
func (h host) qdiscs() string {
	return regexp.MustCompile(` refcnt \d+`).ReplaceAllString(h.tc("-d qdisc show dev "+dev), "")
}

func plan(t testing.TB, limit unit.Rate, groups ...group.Group) shaper.Plan {
	t.Helper()
	tree, problems := group.Direction{Limit: limit, Groups: groups}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return shaper.Plan{Dev: dev, Out: &tree}
}

func two() []group.Group { return []group.Group{{Name: "a", Default: true}, {Name: "b"}} }

func TestKernelHasFQCodel(t *testing.T) {
	h := newHost(t)
	h.tc("qdisc add dev lo root handle 5: pfifo limit 77")
	before := h.tc("-d qdisc show")
	err := h.node.Do(func() error {
		c, err := nl.Open()
		if err != nil {
			return err
		}
		defer c.Close()
		if !c.SupportsFQCodel() {
			t.Error("HasFQCodel is false on a kernel that has it")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := h.tc("-d qdisc show"); after != before {
		t.Errorf("detection changes qdiscs: before:\n%s\nafter:\n%s", before, after)
	}
}

// TestLeavesInForce: each leaf is an fq_codel, below a TBF where super-packets are split.
func TestLeavesInForce(t *testing.T) {
	h := newHost(t)
	for limit, want := range map[unit.Rate]string{
		100 * unit.Mbit: "tbf 10: parent 4847:10 .*\n(.*\n)*qdisc fq_codel c010: parent 10:1 .*flows 256 .*drop_batch 1",
		4 * unit.Gbit:   "fq_codel 10: parent 4847:10 .*flows 256 .*drop_batch 1",
	} {
		h.apply(plan(t, limit, two()...))
		st := h.observe()
		if got := h.qdiscs(); !regexp.MustCompile(want).MatchString(got) || len(st.Drift) > 0 || st.Out.Queues != "fq_codel" {
			t.Errorf("limit %v: queues %q, drift %v; not %q:\n%s", limit, st.Out.Queues, st.Drift, want, got)
		}
		if changes := h.apply(plan(t, limit, two()...)); len(changes) > 0 {
			t.Errorf("limit %v: the second Apply changes %v", limit, changes)
		}
		if err := h.node.Do(func() error { return htb.New().Clear(dev) }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeavesAreRepaired: changes of a leaf by other programs are reported as drift and
// repaired.
func TestLeavesAreRepaired(t *testing.T) {
	h := newHost(t)
	for _, limit := range []unit.Rate{100 * unit.Mbit, 4 * unit.Gbit} {
		leaf, own := "parent 10:1", "c010:"
		if limit > unit.Gbit {
			leaf, own = "parent 4847:10", "10:"
		}
		p := plan(t, limit, two()...)
		h.apply(p)
		want := h.qdiscs()
		for _, damage := range []string{
			"qdisc del dev router " + leaf,
			"qdisc replace dev router " + leaf + " handle 77: pfifo limit 5",
			"qdisc replace dev router " + leaf + " handle 77: fq_codel",
			"qdisc change dev router " + leaf + " handle " + own + " fq_codel target 50ms",
			"qdisc change dev router " + leaf + " handle " + own + " fq_codel noecn",
			"qdisc change dev router " + leaf + " handle " + own + " fq_codel memory_limit 1mb",
			"qdisc change dev router " + leaf + " handle " + own + " fq_codel ce_threshold 1ms",
			"qdisc del dev router parent 4847:10",
			"qdisc replace dev router parent 4847:10 handle 77: pfifo",
			"qdisc replace dev router parent 4847:10 handle 77: tbf rate 1mbit burst 5000 limit 5000",
		} {
			h.tc(damage)
			if st := h.observe(); len(st.Drift) == 0 {
				t.Errorf("limit %v: tc %s is not reported as drift", limit, damage)
			}
			changes := h.apply(p)
			if len(changes) != 1 || !strings.Contains(fmt.Sprint(changes), "a") {
				t.Errorf("limit %v: tc %s is repaired by %v", limit, damage, changes)
			}
			if st := h.observe(); len(st.Drift) > 0 {
				t.Errorf("limit %v: tc %s, repaired: drift %v", limit, damage, st.Drift)
			}
			if got := h.qdiscs(); got != want {
				t.Errorf("limit %v: tc %s, repaired:\n%s\nwant:\n%s", limit, damage, got, want)
			}
		}
	}
}

// TestLeavesOfEarlierVersion: a device that an earlier Headgate version shaped, or that was
// shaped without fq_codel in the kernel, gets the new leaves at the next Apply.
func TestLeavesOfEarlierVersion(t *testing.T) {
	h := newHost(t)
	for _, limit := range []unit.Rate{100 * unit.Mbit, 4 * unit.Gbit} {
		p := plan(t, limit, two()...)
		h.apply(p)
		want := h.qdiscs()
		fifo := nl.Leaf{Limit: 250_000, Segment: 1550}
		if limit > unit.Gbit {
			fifo.Segment = 0
		}
		err := h.node.Do(func() error {
			link, err := linkIndex(dev)
			if err != nil {
				return err
			}
			c, err := nl.Open()
			if err != nil {
				return err
			}
			defer c.Close()
			var b nl.Batch
			for _, minor := range []uint16{2, 0x10, 0x11} {
				own, class := nl.MakeHandle(minor, 0), nl.MakeHandle(0x4847, minor)
				b.DeleteQdisc(link, own, class)
				b.SetLeaf(link, own, class, fifo)
			}
			return c.Execute(&b)
		})
		if err != nil {
			t.Fatal(err)
		}
		if st := h.observe(); len(st.Drift) != 3 || st.Out.Queues != "fifo" {
			t.Errorf("limit %v, FIFO leaves: queues %q, drift %v", limit, st.Out.Queues, st.Drift)
		}
		h.apply(p)
		if got := h.qdiscs(); got != want {
			t.Errorf("limit %v: after Apply:\n%s\nwant:\n%s", limit, got, want)
		}
	}
}

// TestFlowsOfOneGroupAreSeparated: of two flows of one group with 1 Mbit/s, one sends twice as
// much, and the other sends ten small packets per second, which do not wait behind the first.
// The limits allow for a machine that stalls occasionally.
func TestFlowsOfOneGroupAreSeparated(t *testing.T) {
	h := newHost(t)
	const limit = unit.Mbit
	labtest.Try(t, func(c *labtest.Check) {
		h.apply(plan(t, limit, group.Group{Name: "a", Default: true}))
		before := h.observe().Out.Groups[0]
		session, err := traffic.Start(t.Context(), h.lab.Host, []traffic.Flow{{
			Name: "bulk", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(2 * limit),
		}}, traffic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // until the queue is full
		prober, err := traffic.StartProbe(t.Context(), h.lab.Host, traffic.Probe{Name: "sparse", From: "server", To: "client", Every: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var backlog uint64
		var waited time.Duration
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			g := h.observe().Out.Groups[0]
			backlog, waited = max(backlog, g.BacklogBytes), max(waited, g.QueueDelay)
		}
		probed, err := prober.Stop()
		if err != nil {
			t.Fatal(err)
		}
		session.Stop()
		bulk := session.Wait().Flow("bulk").Total
		after := h.observe().Out.Groups[0]
		t.Logf("backlog %d bytes, queue delay of the bulk flow %v; sparse %+v, %d of %d lost; %d of %d of the bulk lost, %d drops counted\n%s",
			backlog, waited, probed.There, probed.Lost, probed.Sent, bulk.LostDatagrams, bulk.Datagrams, after.Drops-before.Drops,
			h.tc("-s qdisc show dev "+dev))
		// A full queue is 1.5 times a write of 320 KiB, in memory: 2.6 s at 1 Mbit/s. With an
		// unresponsive sender, CoDel needs longer than this test to shorten it.
		if backlog < 8*1000 || backlog > 330*1000 {
			c.Errorf("the backlog reached %d bytes; a full queue has about 320,000", backlog)
		}
		if waited < 60*time.Millisecond || waited > 2700*time.Millisecond {
			c.Errorf("the reported queue delay reached %v; a full queue takes 2.6s", waited)
		}
		if probed.There.P50Us > 50_000 || probed.Lost > 0 || probed.Sent < 10 {
			c.Errorf("the median delay of the sparse flow is %.1f ms, and %d of %d packets are lost; want at most 50 ms and none", probed.There.P50Us/1000, probed.Lost, probed.Sent)
		}
		if drops := after.Drops - before.Drops; bulk.LostDatagrams < 50 || drops+20 < bulk.LostDatagrams || drops > bulk.LostDatagrams+20 {
			c.Errorf("%d datagrams are lost, and %d drops are counted", bulk.LostDatagrams, drops)
		}
		if err := h.node.Do(func() error { return htb.New().Clear(dev) }); err != nil {
			t.Fatal(err)
		}
	})
}

func linkIndex(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}
