package htb_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// TestCeilingChangesLeaves: a ceiling that crosses the threshold for splitting, in both
// directions, changes the kinds of leaves.
func TestCeilingChangesLeaves(t *testing.T) {
	node := labtest.Rig(t, lab.RigOptions{}).Node("server")
	e := htb.New()
	for _, limit := range []unit.Rate{unit.Gbit, 8 * unit.Gbit, unit.Gbit, 100 * unit.Mbit, 2 * unit.Gbit} {
		tree, problems := group.Direction{Limit: limit, Groups: []group.Group{{Name: "a", Default: true}, {Name: "b"}}}.Resolve("out", true)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		p := shaper.Plan{Dev: "router", Out: &tree, In: &tree}
		err := node.Do(func() error {
			if _, err := e.Apply(p); err != nil {
				return err
			}
			st, err := e.Observe("router")
			if len(st.Drift) > 0 {
				t.Errorf("limit %v: drift %v", limit, st.Drift)
			}
			return err
		})
		if err != nil {
			t.Fatalf("limit %v: %v", limit, err)
		}
	}
}

// TestCeilingBesideBusyGroups: TCP in a group with a ceiling reaches it, within 4 %, while the other groups are busy, at the first
// level and in a parent group. The group borrows, because its guarantee is lower, and waits for its turn. Outgoing TCP reaches the ceiling
// without credit for that time, too, because the sender waits for its own queue.
//
//	server == router == client
//	  groups capped, a, b, c   or   tenant{capped, a}, b, c
func TestCeilingBesideBusyGroups(t *testing.T) {
	labtest.NeedRoot(t)
	const limit, ceiling = 60 * unit.Mbit, 12 * unit.Mbit
	ports := map[string]uint16{"capped": 5001, "a": 5002, "b": 5003, "c": 5004}
	leaf := func(name string, guarantee unit.Rate) group.Group {
		return group.Group{
			Name: name, Guarantee: group.Amount{Rate: guarantee}, Default: name == "c",
			Match: []group.Selector{{DPort: []group.PortRange{{First: ports[name], Last: ports[name]}}}},
		}
	}
	capped := leaf("capped", 8*unit.Mbit)
	capped.Ceiling = group.Amount{Rate: ceiling}
	a, b, c := leaf("a", 8*unit.Mbit), leaf("b", 8*unit.Mbit), leaf("c", 4*unit.Mbit)
	c.Match = nil
	for name, groups := range map[string][]group.Group{
		"flat":   {capped, a, b, c},
		"nested": {{Name: "tenant", Guarantee: group.Amount{Rate: 30 * unit.Mbit}, Groups: []group.Group{capped, a}}, b, c},
	} {
		t.Run(name, func(t *testing.T) {
			tree, problems := group.Direction{Limit: limit, Groups: groups}.Resolve("in", false)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			labtest.Try(t, func(t *labtest.Check) { reachesCeiling(t, tree, ports) })
		})
	}
}

func reachesCeiling(t *labtest.Check, tree group.Tree, ports map[string]uint16) {
	l := labtest.Rig(t, lab.RigOptions{RTT: time.Millisecond})
	plan := shaper.Plan{Dev: "router", Perspective: group.Host, In: &tree}
	if err := l.Node("server").Do(func() error { _, err := htb.New().Apply(plan); return err }); err != nil {
		t.Fatal(err)
	}
	var flows []traffic.Flow
	for name, port := range ports {
		flows = append(flows, traffic.Flow{Name: name, From: "client", To: "server", Protocol: traffic.TCP, Congestion: "reno", DstPort: port, Schedule: traffic.Constant(tree.Limit)})
	}
	// What was lost when the flows began arrives in order, and is counted, up to 3 s later.
	const settle, all = 3 * time.Second, 7 * time.Second
	result, err := traffic.Run(t.Context(), l.Host, flows, traffic.Options{Duration: all})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Flow("capped").Between(settle, all).DeliveredRate(); got < 0.96*12e6 || got > 1.01*12e6 {
		t.Errorf("%.2f of 12 Mbit/s", got/1e6)
	}
}
