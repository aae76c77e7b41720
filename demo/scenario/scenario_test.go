package scenario

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// TestScenario: the scenario is consistent.
func TestScenario(t *testing.T) {
	for _, fast := range []bool{false, true} {
		s := New(group.HTB, fast)
		if err := Topology("demo-1").Validate(); err != nil {
			t.Error(err)
		}
		for _, f := range s.Flows {
			if err := f.Validate(); err != nil {
				t.Error(err)
			}
		}
		for i, p := range s.Phases {
			if p.Title == "" || p.Text == "" {
				t.Errorf("phase %d has no text", i+1)
			}
			if from, to := s.Measured(i); from >= to || to > s.Length() {
				t.Errorf("phase %d: measured from %v to %v", i+1, from, to)
			}
			// The user must have time to read the text of a phase.
			if !fast && p.Length < 8*time.Second {
				t.Errorf("phase %d takes %v, want at least 8s", i+1, p.Length)
			}
		}
		if most := map[bool]time.Duration{true: 22 * time.Second, false: 63 * time.Second}[fast]; s.Length() > most {
			t.Errorf("the scenario takes %v, want at most %v", s.Length(), most)
		}
	}
}

// plans returns the group trees of a host's configuration; in is empty if direction in has no
// limit.
func plans(t *testing.T, s Scenario, host string, export unit.Rate) (out, in group.Tree) {
	t.Helper()
	set, err := config.Parse("host.yaml", []byte(s.Config(host, export)))
	if err != nil {
		t.Fatal(err)
	}
	i := set.Interfaces[0]
	if i.InTree == nil {
		i.InTree = &group.Tree{}
	}
	return *i.OutTree, *i.InTree
}

func TestScenarioConfig(t *testing.T) {
	s := New(group.Quantum, false)
	out, _ := plans(t, s, Hosts[0], Export)
	if len(out.Nodes) != 4 || out.Nodes[2].Path != "export" || out.Nodes[1].Ceiling != limitOut {
		t.Errorf("groups of the engine quantum: %+v", out.Nodes)
	}
	s = New(group.HTB, false)
	out, in := plans(t, s, Hosts[0], Export)
	after, _ := plans(t, s, Hosts[0], ExportRaised)
	light, _ := plans(t, s, Hosts[1], Export)
	of := func(tree group.Tree, path string) group.Node {
		t.Helper()
		i := slices.IndexFunc(tree.Nodes, func(n group.Node) bool { return n.Path == path })
		if i < 0 {
			t.Fatalf("no group %s", path)
		}
		return tree.Nodes[i]
	}
	for _, c := range []struct {
		what      string
		got, want unit.Rate
	}{
		{"out's limit", out.Limit, 100 * unit.Mbit}, {"in's limit", in.Limit, 80 * unit.Mbit},
		{"media's guarantee", of(out, "media").Guarantee, 50 * unit.Mbit},
		{"storage's guarantee", of(out, "media/storage").Guarantee, 40 * unit.Mbit},
		{"export's guarantee", of(out, "shop/export").Guarantee, 20 * unit.Mbit}, {"then", of(after, "shop/export").Guarantee, 35 * unit.Mbit},
		{"the highest possible guarantee of export", ExportRaised, of(out, "shop").Guarantee - of(out, "shop/web").Guarantee},
		{"backup's ceiling", of(in, "media/backup").Ceiling, 12 * unit.Mbit},
		{"shop's guarantee elsewhere", of(light, "shop").Guarantee, 4500 * unit.Kbit},
		{"the bottleneck out", linkOut, 101 * unit.Mbit}, {"the bottleneck in", linkIn, 80800 * unit.Kbit},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestScenarioFlowsFollowTheRules: the configuration's rules put the packets of each flow
// in the flow's group.
func TestScenarioFlowsFollowTheRules(t *testing.T) {
	for _, engine := range []group.Engine{group.HTB, group.Quantum} {
		s := New(engine, true)
		addresses := map[string]netip.Addr{}
		for _, d := range Topology("demo-1").Devices() {
			if _, first := addresses[d.Node]; !first {
				addresses[d.Node] = d.IPv4.Addr()
			}
		}
		for _, f := range s.Flows {
			out, in := plans(t, s, f.Host, Export)
			tree := out
			if f.Direction == "in" {
				tree = in
			}
			p := group.Packet{Proto: group.TCP, Src: addresses[f.From], Dst: addresses[f.To], SPort: f.SrcPort, DPort: f.DstPort, DSCP: f.DSCP}
			if f.Protocol == traffic.UDP {
				p.Proto = group.UDP
			}
			if _, leaf := tree.Classify(p); tree.Nodes[leaf].Path != s.groupIn(f, Quiet) {
				t.Errorf("%s, %s: the rules select %s, the scenario has %s", engine, f.Name, tree.Nodes[leaf].Path, s.groupIn(f, Quiet))
			}
		}
	}
}

// TestScenarioDelegations: the groups that are delegated to tenants exist.
func TestScenarioDelegations(t *testing.T) {
	for _, engine := range []group.Engine{group.HTB, group.Quantum} {
		s := New(engine, true)
		for _, g := range s.Delegations() {
			out, in := plans(t, s, g.Host, Export)
			tree := map[string]group.Tree{"out": out, "in": in}[g.Direction]
			if !slices.ContainsFunc(tree.Nodes, func(n group.Node) bool { return n.Path == g.Group }) {
				t.Errorf("%s: no such group: %+v", engine, g)
			}
		}
	}
}

// TestScenarioIsQuietAtFirst: in the first phase the demand of each group is a fifth of its guarantee.
func TestScenarioIsQuietAtFirst(t *testing.T) {
	s := New(group.HTB, false)
	for _, host := range Hosts {
		out, in := plans(t, s, host, Export)
		for direction, tree := range map[string]group.Tree{"out": out, "in": in} {
			for _, n := range tree.Nodes {
				if got := s.Demand(Place{host, direction, n.Path}, Quiet); n.Leaf && got != n.Guarantee/5 {
					t.Errorf("%s %s %s: demand %v, want a fifth of %v", host, direction, n.Path, got, n.Guarantee)
				}
			}
		}
	}
}

// TestScenarioShares: the allocations of package share show what the phases demonstrate.
func TestScenarioShares(t *testing.T) {
	s := New(group.HTB, false)
	const acks = unit.Mbit
	for _, c := range []struct {
		phase  int
		export unit.Rate
		want   [6]float64 // media, storage, backup, shop, export, web, out, in Mbit/s
	}{
		{Quiet, Export, [6]float64{10, 8, 2, 6, 4, 2}},
		{Overload, Export, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}}, // 4 are lent to the tenants, 50 to 45
		{Idle, Export, [6]float64{15, 0, 15, 84, 56, 28}},                        // backup at its ceiling
		{Return, Export, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}},
		{Deadline, ExportRaised, [6]float64{52.11, 41.68, 10.42, 46.89, 36.47, 10.42}},
		{Restore, Export, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}},
		{Assign, Export, [6]float64{52.11, 41.68, 10.42, 46.89, 38.89, 8}}, // the demand of web is 8
	} {
		out, _ := plans(t, s, Hosts[0], c.export)
		demand := make([]unit.Rate, len(out.Nodes))
		for i, n := range out.Nodes {
			demand[i] = s.Demand(Place{Hosts[0], "out", n.Path}, c.phase)
		}
		got := Shares(out, demand, acks)
		for i, want := range c.want {
			if rate := float64(got[i]) / 1e6; rate < want-0.01 || rate > want+0.01 {
				t.Errorf("phase %d: %s gets %.2f, want %.2f", c.phase+1, out.Nodes[i].Path, rate, want)
			}
		}
	}
}

// TestScenarioRepeated: continuous traffic goes through all phases in every round.
func TestScenarioRepeated(t *testing.T) {
	s := New(group.HTB, true)
	const rounds = 3
	for i, f := range s.Repeated(rounds * s.Length()) {
		once := s.Flows[i].Schedule
		if len(f.Schedule) != rounds*len(once) {
			t.Fatalf("%s: %d steps, want %d", f.Name, len(f.Schedule), rounds*len(once))
		}
		for n, step := range f.Schedule {
			want := once[n%len(once)]
			if want.At += time.Duration(n/len(once)) * s.Length(); step != want {
				t.Errorf("%s: step %d: %+v, want %+v", f.Name, n, step, want)
			}
		}
		if err := f.Validate(); err != nil {
			t.Error(err)
		}
	}
}
