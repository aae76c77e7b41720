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
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// TestNestedLending: nested groups borrow level by level, as in share.Allocate: the only active
// group of a tenant gets the tenant's rate. The tolerance is 5 %.
//
//	server == router == client
//	  groups shop{vm{web, mail}, backup, others}, rest
func TestNestedLending(t *testing.T) {
	labtest.NeedRoot(t)
	const limit = 40 * unit.Mbit
	port := func(p uint16) []group.Selector {
		return []group.Selector{{DPort: []group.PortRange{{First: p, Last: p}}}}
	}
	amount := func(r unit.Rate) group.Amount { return group.Amount{Rate: r} }
	groups := []group.Group{
		{Name: "shop", Guarantee: amount(16 * unit.Mbit), Groups: []group.Group{
			{Name: "vm", Guarantee: amount(10 * unit.Mbit), Groups: []group.Group{
				{Name: "web", Guarantee: amount(6 * unit.Mbit), Match: port(5001)},
				{Name: "mail", Guarantee: amount(2 * unit.Mbit), Match: port(5002)},
			}},
			{Name: "backup", Guarantee: amount(2 * unit.Mbit), Match: port(5003)},
			{Name: "others", Guarantee: amount(4 * unit.Mbit), Default: true},
		}},
		{Name: "rest", Guarantee: amount(4 * unit.Mbit), Match: port(5004)},
	}
	ports := map[string]uint16{"shop/vm/web": 5001, "shop/vm/mail": 5002, "shop/backup": 5003, "rest": 5004}
	all := []string{"shop/vm/web", "shop/vm/mail", "shop/backup", "rest"}
	for _, c := range []struct {
		spare group.Spare
		busy  []string
		in    bool
	}{
		{group.Proportional, []string{"shop/vm/web", "rest"}, false},
		{group.Proportional, []string{"shop/vm/web", "rest"}, true},
		{group.Proportional, all, false},
		{group.Equal, all, true},
	} {
		tree, problems := group.Direction{Limit: limit, Spare: c.spare, Groups: groups}.Resolve("out", true)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		labtest.Try(t, func(t *labtest.Check) { nestedLending(t, tree, c.busy, ports, c.in) })
	}
}

func nestedLending(t *labtest.Check, tree group.Tree, busy []string, ports map[string]uint16, in bool) {
	l := labtest.Rig(t, lab.RigOptions{RTT: time.Millisecond})
	plan, from, to := shaper.Plan{Dev: "router", Perspective: group.Host, Out: &tree}, "server", "client"
	if in {
		plan.Out, plan.In, from, to = nil, &tree, to, from
	}
	if err := l.Node("server").Do(func() error { _, err := htb.New().Apply(plan); return err }); err != nil {
		t.Fatal(err)
	}
	claims := make([]share.Claim, len(tree.Nodes))
	for i, n := range tree.Nodes {
		claims[i] = share.Claim{Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(tree.Weight(n))}
	}
	var flows []traffic.Flow
	for _, path := range busy {
		i, err := tree.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		claims[i].Demand = tree.Limit
		flows = append(flows, traffic.Flow{Name: path, From: from, To: to, Protocol: traffic.UDP, DstPort: ports[path], Schedule: traffic.Constant(tree.Limit)})
	}
	policy := map[group.Spare]share.Spare{group.Proportional: share.Proportional, group.Equal: share.Equal}[tree.Spare]
	right := share.Allocate(tree.Limit, policy, claims)
	const settle, all = 500 * time.Millisecond, 3 * time.Second
	result, err := traffic.Run(t.Context(), l.Host, flows, traffic.Options{Duration: all})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range tree.Nodes {
		if claims[i].Demand == 0 {
			continue
		}
		if got := result.Flow(n.Path).Between(settle, all).DeliveredRate(); got < 0.95*float64(right[i]) || got > 1.05*float64(right[i]) {
			t.Errorf("%s, in %v, active %v: %s has %.2f Mbit/s, want %.2f", tree.Spare, in, busy, n.Path, got/1e6, float64(right[i])/1e6)
		}
	}
}
