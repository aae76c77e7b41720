package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/agent/record"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
	top "headgate.dev/headgate/view"
)

// One trace of counters gives the same usage everywhere, to the bit: in package usage, in "headgate top", in the
// usage record, in the API (which the dashboard shows as it is) and in metrics. A limit of 100 Mbit/s, an idle
// group with a guarantee of 40, and a tenant of 20 whose child carries 60: half of what is borrowed is lent by the
// idle group, and half comes from the 40 that no group is guaranteed.
func TestOneAccountOfUsage(t *testing.T) {
	tree := &group.Tree{Limit: 100 * unit.Mbit, Default: 2, Nodes: []group.Node{
		{Path: "idle", Parent: -1, Depth: 1, Leaf: true, Guarantee: 40 * unit.Mbit, Ceiling: 100 * unit.Mbit},
		{Path: "shop", Parent: -1, Depth: 1, Guarantee: 20 * unit.Mbit, Ceiling: 100 * unit.Mbit},
		{Path: "shop/web", Parent: 1, Depth: 2, Leaf: true, Guarantee: 20 * unit.Mbit, Ceiling: 100 * unit.Mbit},
	}}
	began := time.Now().Truncate(time.Minute).Add(10 * time.Second)
	state := func(at time.Time, bytes, control uint64) shaper.State {
		groups := []shaper.GroupState{{Path: "idle", Class: "1:a", Guarantee: 40 * unit.Mbit}, {Path: "shop", Class: "1:b", Guarantee: 20 * unit.Mbit},
			{Path: "shop/web", Class: "1:c", Guarantee: 20 * unit.Mbit, Bytes: bytes, Packets: bytes / 1500, Drops: bytes / 1e6, BacklogBytes: 3000}}
		return shaper.State{Dev: "eth0", Engine: group.HTB, Plan: shaper.Plan{Dev: "eth0", Out: tree}, At: at,
			Out: &shaper.DirectionState{At: at, Groups: groups, Control: shaper.GroupState{Class: "1:2", Bytes: control}}}
	}
	was, is := state(began, 1_000_003, 77), state(began.Add(1003*time.Millisecond), 1_000_003+7_522_501, 5_077)
	want := usage.Account(was.Usage()[0].Counters(), is.Usage()[0])
	if idle, web := want[0], want[2]; idle.Lent < idle.Unused()*49/100 || idle.Lent > idle.Unused()*51/100 || web.Borrowed <= web.Guaranteed || want[1].Delivered != web.Delivered {
		t.Fatalf("usage is %+v", want)
	}

	// headgate top
	var tracker top.Tracker
	tracker.Update(began, []shaper.State{was})
	rows := tracker.Update(began, []shaper.State{is}).Devices[0].Directions[0].Groups
	// the usage record
	records, err := record.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []shaper.State{was, is} {
		if err := records.Add(s.At, map[string][]usage.Direction{s.Dev: s.Usage()}); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := records.Usage(began.Add(-time.Minute), began.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	// the API
	l := &link{host: "h1", tables: map[string]*table{}, out: make(chan *agents.ToAgent, 8)}
	for _, s := range []shaper.State{was, is} {
		l.report(&agents.Report{AtNs: s.At.UnixNano(), Devices: []*agents.DeviceReport{remote.DeviceReport(s.Dev, s.Usage())}})
	}
	rates, ok := view{&hub{links: map[string]*link{l.host: l}}}.Rates("h1")
	if !ok || len(rates.Items) != len(want) {
		t.Fatalf("the API has %+v", rates)
	}
	byGroup := map[string]api.GroupRates{}
	for _, g := range rates.Items {
		byGroup[g.Group] = g
	}
	delivered := deliveredBytes(t, is)

	for n, u := range want {
		g := tree.Nodes[n]
		r, a := rows[n], byGroup[g.Path]
		if r.Rate != u.Rate(u.Delivered) || r.Borrowed != u.Rate(u.Borrowed) || r.Lent != u.Rate(u.Lent) {
			t.Errorf("%s in top: %+v, want %+v", g.Path, r, u)
		}
		if got := recorded["eth0"]["out/"+g.Path]; got != u {
			t.Errorf("%s in the record: %+v, want %+v", g.Path, got, u)
		}
		if a.DeliveredBps != int64(u.Rate(u.Delivered)) || a.BorrowedBps != int64(u.Rate(u.Borrowed)) || a.LentBps != int64(u.Rate(u.Lent)) ||
			a.UnusedBps != int64(u.Rate(u.Unused())) || a.GuaranteedBps != int64(g.Guarantee) {
			t.Errorf("%s in the API: %+v, want %+v", g.Path, a, u)
		}
		if g.Leaf && delivered[g.Path] != float64(is.Out.Groups[n].Bytes) {
			t.Errorf("%s in metrics: %v bytes, want %v", g.Path, delivered[g.Path], is.Out.Groups[n].Bytes)
		}
	}
}

// deliveredBytes returns headgate_group_delivered_bytes_total by group.
func deliveredBytes(t *testing.T, s shaper.State) map[string]float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewGroups(func() []shaper.State { return []shaper.State{s} }, func(string, string) float64 { return 0 }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "headgate_group_delivered_bytes_total" {
			continue
		}
		for _, m := range f.Metric {
			for _, label := range m.Label {
				if label.GetName() == "group" {
					out[label.GetValue()] = m.Counter.GetValue()
				}
			}
		}
	}
	return out
}
