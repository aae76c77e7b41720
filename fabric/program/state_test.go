package program

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
)

// What a switch is believed to have after a plan is what it has: State agrees with a switch that executed the messages.
func TestState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &tables{t: t}
		s.Flows = []openflow.FlowStats{{Table: 0, Priority: 1, Match: openflow.Match{openflow.InPort(1)}, Cookie: 7}, {Table: 9, Cookie: 7}}
		s.Groups = []openflow.GroupDesc{{Group: 5, Kind: openflow.GroupTypeAll}}
		believed := s.State
		for _, label := range []string{"first", "second"} {
			p := drawn(t, label)
			plan, err := Diff(p, believed, ours)
			if err != nil {
				t.Fatalf("%v", err)
			}
			for _, step := range plan.Steps {
				for _, c := range step {
					s.apply(c.Message)
				}
			}
			believed = *p.State(believed.Foreign(ours))
			if len(believed.Flows) != len(s.Flows) || len(believed.Groups) != len(s.Groups) || len(believed.Meters) != len(s.Meters) {
				t.Fatalf("believed %d flows, %d groups, %d meters; the switch has %d, %d, %d", len(believed.Flows), len(believed.Groups), len(believed.Meters), len(s.Flows), len(s.Groups), len(s.Meters))
			}
			for _, f := range believed.Flows {
				if !slices.ContainsFunc(s.Flows, func(o openflow.FlowStats) bool {
					return placeOf(o.Table, o.Priority, o.Match) == placeOf(f.Table, f.Priority, f.Match) && o.Cookie == f.Cookie
				}) {
					t.Fatalf("believed %v", f)
				}
			}
		}
	})
}
