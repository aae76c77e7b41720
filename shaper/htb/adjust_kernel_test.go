package htb_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// adjustable returns a limit of 100 Mbit/s with an adjustable group of 10 Mbit/s for UDP port 5001.
func adjustable() *group.Tree {
	return &group.Tree{
		Limit: 100 * unit.Mbit, Spare: group.Proportional, Default: 0,
		Nodes: []group.Node{
			{Path: "rest", Parent: -1, Depth: 1, Leaf: true, Ceiling: 100 * unit.Mbit},
			{Path: "reservation:a", Parent: -1, Depth: 1, Leaf: true, Guarantee: 10 * unit.Mbit, Ceiling: 100 * unit.Mbit, Adjustable: true},
		},
		Rules: []group.Rule{{Node: 1, Selector: group.Selector{DPort: []group.PortRange{group.SingleRange(5001)}}}},
	}
}

// TestAdjust: a limit changes the class of its group alone. Packets stay in the queue, counters go on, the plan is in force
// as before, and later changes of the plan keep the limit.
//
//	server == router == client
func TestAdjust(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	e := htb.New()
	client, err := l.Node("client").Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	const path = "reservation:a"
	plan := shaper.Plan{Dev: "router", Out: adjustable()}
	if err := l.Node("server").Do(func() error {
		observe := func(what string) shaper.GroupState {
			t.Helper()
			st, err := e.Observe("router")
			if err != nil {
				t.Fatal(err)
			}
			if len(st.Drift) > 0 {
				t.Errorf("%s: drift %v", what, st.Drift)
			}
			return st.Out.Groups[1]
		}
		near := func(what string, got, want unit.Rate) {
			t.Helper()
			if got > want+64 || got+64 < want {
				t.Errorf("%s: the limit is %v, want %v", what, got, want)
			}
		}
		if _, err := e.Apply(plan); err != nil {
			return err
		}
		near("at first", observe("at first").Ceiling, 10*unit.Mbit)
		c, err := net.ListenUDP("udp", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		send := func(packets int) {
			for range packets {
				if _, err := c.WriteToUDPAddrPort(make([]byte, 1400), netip.AddrPortFrom(client, 5001)); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(1) // resolves the neighbour
		time.Sleep(50 * time.Millisecond)
		if err := e.Adjust("router", map[string]unit.Rate{path: 100 * unit.Kbit}); err != nil {
			return err
		}
		send(20) // 2.3 seconds of the limit
		before := observe("at 100 kbit/s")
		near("at 100 kbit/s", before.Ceiling, 100*unit.Kbit)
		if before.BacklogBytes < 10*1400 {
			t.Errorf("at 100 kbit/s %d bytes wait, want most of 28000", before.BacklogBytes)
		}
		if err := e.Adjust("router", map[string]unit.Rate{path: 50 * unit.Mbit}); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		after := observe("at 50 Mbit/s")
		near("at 50 Mbit/s", after.Ceiling, 50*unit.Mbit)
		if after.Class != before.Class || after.Packets != 21 || after.Drops > 0 || after.BacklogBytes > 0 {
			t.Errorf("after 21 packets the group is %+v", after)
		}

		// Another group comes, with which the program is loaded again.
		more := adjustable()
		more.Nodes = append(more.Nodes, group.Node{Path: "reservation:b", Parent: -1, Depth: 1, Leaf: true, Guarantee: 85 * unit.Mbit, Ceiling: 100 * unit.Mbit, Adjustable: true})
		more.Rules = append(more.Rules, group.Rule{Node: 2, Selector: group.Selector{DPort: []group.PortRange{group.SingleRange(5002)}}})
		if _, err := e.Apply(shaper.Plan{Dev: "router", Out: more}); err != nil {
			return err
		}
		again := observe("beside another")
		near("beside another", again.Ceiling, 50*unit.Mbit)
		if again.Class != before.Class || again.Packets != 21 {
			t.Errorf("beside another the group is %+v", again)
		}

		// Limits are clamped, and a missing group is named while the others change.
		err = e.Adjust("router", map[string]unit.Rate{path: unit.Gbit, "reservation:none": unit.Mbit, "rest": unit.Mbit})
		if err == nil || !strings.Contains(err.Error(), "reservation:none, rest") {
			t.Errorf("limits of groups without any: %v", err)
		}
		if got := observe("above the limit").Ceiling; got != 100*unit.Mbit {
			t.Errorf("a limit above that of the tree is %v", got)
		}
		if err := e.Adjust("router", map[string]unit.Rate{path: 0}); err != nil {
			return err
		}
		near("at 0", observe("at 0").Ceiling, group.MinRate)

		began := time.Now()
		const times = 20
		for n := range times {
			if err := e.Adjust("router", map[string]unit.Rate{path: unit.Rate(n+10) * unit.Mbit, "reservation:b": unit.Rate(n+10) * unit.Mbit}); err != nil {
				return err
			}
		}
		t.Logf("Adjust of 2 groups takes %v", time.Since(began)/times)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAdjust measures what a cycle costs an agent with this number of reservations on one interface, all of which
// change.
func BenchmarkAdjust(b *testing.B) {
	l := labtest.Rig(b, lab.RigOptions{})
	e := htb.New()
	for _, count := range []int{1, 100, 1000} {
		tree := adjustable()
		tree.Nodes, tree.Rules = tree.Nodes[:1], nil
		limits := map[string]unit.Rate{}
		for n := range count {
			path := fmt.Sprintf("reservation:%d", n)
			limits[path] = unit.Mbit
			tree.Nodes = append(tree.Nodes, group.Node{Path: path, Parent: -1, Depth: 1, Leaf: true, Guarantee: 50 * unit.Kbit, Ceiling: tree.Limit, Adjustable: true})
			tree.Rules = append(tree.Rules, group.Rule{Node: n + 1, Selector: group.Selector{DPort: []group.PortRange{group.SingleRange(uint16(n + 1))}}})
		}
		if err := l.Node("server").Do(func() error {
			if _, err := e.Apply(shaper.Plan{Dev: "router", Out: tree}); err != nil {
				return err
			}
			began := time.Now()
			const times = 10
			for range times {
				if err := e.Adjust("router", limits); err != nil {
					return err
				}
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/times, fmt.Sprintf("µs/%d-limits", count))
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
