package fabric

import (
	"testing"

	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// The changes that the program of a network asks for after a cable's death are all needed, and none is missing; a further one is
// needless, and one that is left out is missing.
func TestMinimal(t *testing.T) {
	p := inmemory.Network{Switches: 12, Cables: 20, Hosts: 12, Seed: 5}.Plan()
	changed := 0
	for cut := range p.Cables {
		before, err := p.Topology(-1)
		if err != nil {
			t.Fatal(err)
		}
		after, err := p.Topology(cut)
		if err != nil {
			t.Fatal(err)
		}
		labels, err := program.AssignLabels(nil, before.Switches())
		if err != nil {
			t.Fatal(err)
		}
		byID := map[uint64]uint16{}
		for id, l := range labels {
			byID[uint64(id)] = l
		}
		hostPort := map[fabric.PortID]bool{}
		for _, h := range p.Hosts {
			hostPort[h.Port()] = true
		}
		connect := func(t *fabric.Topology) *program.Connectivity {
			return &program.Connectivity{Topology: t, Tree: t.SpanningTree(), Next: t.NextHops(), Labels: labels, HostPort: func(id fabric.PortID) bool { return hostPort[id] }}
		}
		var mods []inmemory.Mod
		was, is := connect(before), connect(after)
		for _, s := range before.Switches() {
			had, err := was.Program(s.ID)
			if err != nil {
				t.Fatal(err)
			}
			want, err := is.Program(s.ID)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := program.Diff(want, *had.State(program.State{}), program.Managed)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range plan.Steps {
				for _, c := range step {
					b, err := openflow.Append(nil, 1, c.Message)
					if err != nil {
						t.Fatal(err)
					}
					mods = append(mods, inmemory.Mod{Switch: uint64(s.ID), Message: b})
				}
			}
		}
		ends := [2]fabric.DPID{fabric.DPID(p.Cables[cut][0].ID()), fabric.DPID(p.Cables[cut][1].ID())}
		m := newMinimal(before, after, ends, byID)
		needless, missing, err := m.judge(mods)
		if err != nil || len(needless) > 0 || len(missing) > 0 {
			t.Fatalf("cable %d: %v; needless %q; missing %q", cut, err, needless, missing)
		}
		if _, missing, _ := m.judge(nil); len(missing) != m.changes() {
			t.Errorf("cable %d: without any change %d are missing", cut, len(missing))
		} else {
			changed += len(missing)
		}
		// The rule to itself never changes, nor does that for hosts.
		for _, extra := range []openflow.Message{
			&openflow.FlowMod{Table: program.TableLabel, Match: openflow.Match{openflow.VLAN(byID[uint64(ends[0])])}},
			&openflow.FlowMod{Table: program.TableDestination},
			&openflow.GroupMod{Group: groupBase + openflow.GroupID(byID[uint64(ends[0])])},
			&openflow.MeterMod{Meter: 1},
		} {
			b, err := openflow.Append(nil, 1, extra)
			if err != nil {
				t.Fatal(err)
			}
			if needless, _, _ := m.judge(append(mods[:len(mods):len(mods)], inmemory.Mod{Switch: uint64(ends[0]), Message: b})); len(needless) != 1 {
				t.Errorf("cable %d: %v is not needless", cut, extra)
			}
		}
	}
	if changed < 50 {
		t.Errorf("only %d next hops changed", changed)
	}
}
