package program

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
)

var ours = Ours{Cookie: 0x4847 << 48, CookieMask: 0xffff << 48, Groups: [2]openflow.GroupID{100, 199}, Meters: [2]openflow.MeterID{10, 99}}

// tables is a switch that does what it is told, and fails a test when it is told what a switch refuses.
type tables struct {
	t interface{ Fatalf(string, ...any) }
	State
}

func (s *tables) apply(m openflow.Message) {
	switch m := m.(type) {
	case *openflow.MeterMod:
		at := slices.IndexFunc(s.Meters, func(o openflow.MeterConfig) bool { return o.Meter == m.Meter })
		switch {
		case m.Command == openflow.MeterAdd && at < 0:
			s.Meters = append(s.Meters, openflow.MeterConfig{Flags: m.Flags, Meter: m.Meter, Bands: m.Bands})
		case m.Command == openflow.MeterModify && at >= 0:
			s.Meters[at] = openflow.MeterConfig{Flags: m.Flags, Meter: m.Meter, Bands: m.Bands}
		case m.Command == openflow.MeterDelete && at >= 0:
			for _, f := range s.Flows { // a switch deletes them, too
				if uses(f.Instructions, func(i openflow.Instruction) bool { return i == openflow.Meter{Meter: m.Meter} }) {
					s.t.Fatalf("meter %d is deleted before flow %v", m.Meter, f.Match)
				}
			}
			s.Meters = slices.Delete(s.Meters, at, at+1)
		default:
			s.t.Fatalf("refused: %v", m)
		}
	case *openflow.GroupMod:
		at := slices.IndexFunc(s.Groups, func(o openflow.GroupDesc) bool { return o.Group == m.Group })
		for _, b := range m.Buckets {
			for _, id := range groupsIn(b.Actions) {
				if !slices.ContainsFunc(s.Groups, func(o openflow.GroupDesc) bool { return o.Group == id }) {
					s.t.Fatalf("group %d refers to %d, which does not exist yet", m.Group, id)
				}
			}
		}
		desc := openflow.GroupDesc{Kind: m.Kind, Group: m.Group, Buckets: m.Buckets}
		switch {
		case m.Command == openflow.GroupAdd && at < 0:
			s.Groups = append(s.Groups, desc)
		case m.Command == openflow.GroupModify && at >= 0:
			s.Groups[at] = desc
		case m.Command == openflow.GroupDelete && at >= 0:
			for _, f := range s.Flows {
				if uses(f.Instructions, func(i openflow.Instruction) bool { return slices.Contains(groupsIn(actionsIn(i)), m.Group) }) {
					s.t.Fatalf("group %d is deleted before flow %v", m.Group, f.Match)
				}
			}
			for _, g := range s.Groups {
				for _, b := range g.Buckets {
					if slices.Contains(groupsIn(b.Actions), m.Group) {
						s.t.Fatalf("group %d is deleted before group %d", m.Group, g.Group)
					}
				}
			}
			s.Groups = slices.Delete(s.Groups, at, at+1)
		default:
			s.t.Fatalf("refused: %v", m)
		}
	case *openflow.FlowMod:
		is := func(f openflow.FlowStats) bool {
			return placeOf(f.Table, f.Priority, f.Match) == placeOf(m.Table, m.Priority, m.Match)
		}
		at := slices.IndexFunc(s.Flows, is)
		for _, i := range m.Instructions {
			for _, id := range groupsIn(actionsIn(i)) {
				if !slices.ContainsFunc(s.Groups, func(o openflow.GroupDesc) bool { return o.Group == id }) {
					s.t.Fatalf("a flow refers to group %d, which does not exist yet", id)
				}
			}
			if meter, ok := i.(openflow.Meter); ok && !slices.ContainsFunc(s.Meters, func(o openflow.MeterConfig) bool { return o.Meter == meter.Meter }) {
				s.t.Fatalf("a flow refers to meter %d, which does not exist yet", meter.Meter)
			}
		}
		if at >= 0 && !ours.flow(s.Flows[at].Cookie) {
			s.t.Fatalf("a foreign flow is changed: %v", m)
		}
		switch m.Command {
		case openflow.FlowAdd: // replaces, and resets the counters
			if at >= 0 {
				s.Flows = slices.Delete(s.Flows, at, at+1)
			}
			s.Flows = append(s.Flows, openflow.FlowStats{Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout, Flags: m.Flags, Match: m.Match, Instructions: m.Instructions})
		case openflow.FlowModifyStrict:
			if at < 0 || s.Flows[at].Cookie&m.CookieMask != m.Cookie&m.CookieMask {
				s.t.Fatalf("changes nothing: %v", m)
			}
			s.Flows[at].Instructions = m.Instructions
		case openflow.FlowDeleteStrict:
			if at < 0 || s.Flows[at].Cookie&m.CookieMask != m.Cookie&m.CookieMask {
				s.t.Fatalf("deletes nothing: %v", m)
			}
			s.Flows = slices.Delete(s.Flows, at, at+1)
		default:
			s.t.Fatalf("unexpected command: %v", m)
		}
	}
}

func uses(all openflow.Instructions, is func(openflow.Instruction) bool) bool {
	return slices.ContainsFunc(all, is)
}

// drawn draws a program.
func drawn(t *rapid.T, label string) (p Program) {
	for id := range rapid.SliceOfDistinct(rapid.IntRange(10, 14), rapid.ID).Draw(t, label+" meters") {
		p.Meters = append(p.Meters, Meter{ID: openflow.MeterID(10 + id), Flags: openflow.MeterKbps, Bands: []openflow.Band{openflow.DropBand{BandLimit: openflow.BandLimit{Rate: uint32(rapid.IntRange(1, 2).Draw(t, "rate"))}}}})
	}
	n := rapid.IntRange(0, 5).Draw(t, label+" groups")
	for id := range n {
		g := Group{ID: openflow.GroupID(100 + id), Kind: openflow.GroupTypeAll}
		actions := openflow.Actions{openflow.Output{Port: openflow.PortNo(rapid.IntRange(1, 2).Draw(t, "port"))}}
		if id+1 < n && rapid.Bool().Draw(t, "chained") { // to a later one, so that the order matters
			actions = append(actions, openflow.Group{Group: openflow.GroupID(rapid.IntRange(100+id+1, 100+n-1).Draw(t, "refers"))})
		}
		g.Buckets = []openflow.Bucket{{WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: actions}}
		p.Groups = append(p.Groups, g)
	}
	for _, key := range rapid.SliceOfDistinct(rapid.IntRange(0, 11), rapid.ID).Draw(t, label+" flows") {
		f := Flow{Table: openflow.TableID(key % 3), Priority: uint16(key % 2), Match: openflow.Match{openflow.InPort(openflow.PortNo(1 + key/6))}, Cookie: ours.Cookie | uint64(rapid.IntRange(0, 1).Draw(t, "cookie"))}
		if len(p.Groups) > 0 && rapid.Bool().Draw(t, "to a group") {
			f.Instructions = append(f.Instructions, openflow.ApplyActions{Actions: openflow.Actions{openflow.Group{Group: p.Groups[rapid.IntRange(0, len(p.Groups)-1).Draw(t, "group")].ID}}})
		}
		if len(p.Meters) > 0 && rapid.Bool().Draw(t, "metered") {
			f.Instructions = append(f.Instructions, openflow.Meter{Meter: p.Meters[rapid.IntRange(0, len(p.Meters)-1).Draw(t, "meter")].ID})
		}
		p.Flows = append(p.Flows, f)
	}
	return p
}

// has reports whether a switch has exactly a program, apart from what is foreign.
func (s *tables) has(p Program) error {
	plan, err := Diff(p, s.State, ours)
	if err != nil {
		return err
	}
	if n := changes(plan); n > 0 {
		return fmt.Errorf("%d changes are left: %v", n, plan.Steps)
	}
	return nil
}

// Any program becomes any other, by messages that a switch accepts in their order; what is foreign stays, and what is right is
// not touched.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &tables{t: t}
		s.Flows = []openflow.FlowStats{{Table: 0, Priority: 1, Match: openflow.Match{openflow.InPort(1)}, Cookie: 7}, {Table: 9, Cookie: 7}}
		s.Groups = []openflow.GroupDesc{{Group: 5, Kind: openflow.GroupTypeAll}}
		s.Meters = []openflow.MeterConfig{{Meter: 5}}
		foreign := State{slices.Clone(s.Flows), slices.Clone(s.Groups), slices.Clone(s.Meters)}
		for _, label := range []string{"first", "second"} {
			p := drawn(t, label)
			plan, err := Diff(p, s.State, ours)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if plan.Foreign != 4 {
				t.Fatalf("%d foreign objects, want 4", plan.Foreign)
			}
			if total := len(p.Flows) + len(p.Groups) + len(p.Meters); plan.Kept > total || plan.Kept+changes(plan)+len(plan.Collisions) < total {
				t.Fatalf("%d kept, %d changes and %d collisions of %d", plan.Kept, changes(plan), len(plan.Collisions), total)
			}
			for _, step := range plan.Steps {
				for _, c := range step {
					s.apply(c.Message)
				}
			}
			if err := s.has(p); err != nil {
				t.Fatalf("after the %s program: %v", label, err)
			}
			for _, f := range foreign.Flows {
				if !slices.ContainsFunc(s.Flows, func(o openflow.FlowStats) bool { return o.Cookie == f.Cookie && o.Table == f.Table }) {
					t.Fatalf("the foreign flow in table %d is gone", f.Table)
				}
			}
			if s.Groups[0].Group != 5 || s.Meters[0].Meter != 5 {
				t.Fatalf("a foreign group or meter is gone")
			}
		}
	})
}

func TestDiffKeeps(t *testing.T) {
	out := func(p openflow.PortNo) openflow.Instructions {
		return openflow.Instructions{openflow.ApplyActions{Actions: openflow.Actions{openflow.Output{Port: p}}}}
	}
	f := Flow{Table: 1, Priority: 5, Match: openflow.Match{openflow.EthDst(openflow.MAC{2}), openflow.InPort(3)}, Cookie: ours.Cookie, Instructions: out(1), Why: "deliver"}
	have := openflow.FlowStats{Table: 1, Priority: 5, Match: openflow.Match{openflow.InPort(3), openflow.EthDst(openflow.MAC{2})}, Cookie: ours.Cookie, Instructions: out(1), Packets: 9}
	for name, c := range map[string]struct {
		change func(want *Flow, have *openflow.FlowStats)
		want   []string // the commands
	}{
		"the same in another order": {func(*Flow, *openflow.FlowStats) {}, nil},
		"an empty instruction": {func(_ *Flow, h *openflow.FlowStats) {
			h.Instructions = append(openflow.Instructions{openflow.WriteActions{}}, h.Instructions...)
		}, nil},
		"other instructions keep the counters": {func(w *Flow, _ *openflow.FlowStats) { w.Instructions = out(2) }, []string{"modify"}},
		"another cookie":                       {func(w *Flow, _ *openflow.FlowStats) { w.Cookie++ }, []string{"add"}},
		"another timeout":                      {func(w *Flow, _ *openflow.FlowStats) { w.IdleTimeout++ }, []string{"add"}},
		"another place":                        {func(w *Flow, _ *openflow.FlowStats) { w.Priority++ }, []string{"add", "delete"}},
		"a foreign flow in the place":          {func(_ *Flow, h *openflow.FlowStats) { h.Cookie = 1 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := f, have
			c.change(&w, &h)
			plan, err := Diff(Program{Flows: []Flow{w}}, State{Flows: []openflow.FlowStats{h}}, ours)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range plan.Steps {
				for _, one := range s {
					got = append(got, map[openflow.FlowCommand]string{openflow.FlowAdd: "add", openflow.FlowModifyStrict: "modify", openflow.FlowDeleteStrict: "delete"}[one.Message.(*openflow.FlowMod).Command])
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("commands %v, want %v", got, c.want)
			}
			if foreign := h.Cookie == 1; foreign != (len(plan.Collisions) == 1) || foreign && !strings.Contains(plan.Collisions[0].String(), "the flow to deliver was not set, because the switch has a flow with cookie 0x1 in table 1") {
				t.Errorf("collisions %v", plan.Collisions)
			}
		})
	}
}

func TestContradictions(t *testing.T) {
	ff := func(id, watch openflow.GroupID, actions ...openflow.Action) Group {
		return Group{ID: id, Kind: openflow.GroupTypeFF, Buckets: []openflow.Bucket{{WatchPort: openflow.PortAny, WatchGroup: watch, Actions: actions}}, Why: "protect"}
	}
	flow := Flow{Cookie: ours.Cookie, Why: "deliver"}
	with := func(i openflow.Instruction) Flow { f := flow; f.Instructions = openflow.Instructions{i}; return f }
	for want, p := range map[string]Program{
		"two flows have table 0, priority 0":                                        {Flows: []Flow{flow, flow}},
		"the cookie 0x0 of the flow to deliver is not":                              {Flows: []Flow{{Why: "deliver"}}},
		"the flow to deliver has group 101, which the program does not have":        {Flows: []Flow{with(openflow.ApplyActions{Actions: openflow.Actions{openflow.Group{Group: 101}}})}},
		"the flow to deliver has meter 11, which the program does not have":         {Flows: []Flow{with(openflow.Meter{Meter: 11})}},
		"group 100 to protect refers to group 101, which the program does not have": {Groups: []Group{ff(100, 101)}},
		"refers to itself, over other groups or at once":                            {Groups: []Group{ff(100, 101), ff(101, openflow.GroupAny, openflow.Group{Group: 100})}},
		"group 5 to protect is not between 100 and 199":                             {Groups: []Group{ff(5, openflow.GroupAny)}},
		"two groups have the number 100":                                            {Groups: []Group{ff(100, openflow.GroupAny), ff(100, openflow.GroupAny)}},
		"two meters have the number 10":                                             {Meters: []Meter{{ID: 10}, {ID: 10}}},
		"meter 5 to limit is not between 10 and 99":                                 {Meters: []Meter{{ID: 5, Why: "limit"}}},
	} {
		if _, err := Diff(p, State{}, ours); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// What is set does not alias what was read: a later change of the one must not change the other.
func TestSameGroup(t *testing.T) {
	b := func(weight uint16, port openflow.PortNo) []openflow.Bucket {
		return []openflow.Bucket{{Weight: weight, WatchPort: port, WatchGroup: openflow.GroupAny, Actions: openflow.Actions{openflow.Output{Port: 1}}}}
	}
	for _, c := range []struct {
		kind       openflow.GroupType
		want, have []openflow.Bucket
		same       bool
	}{
		{openflow.GroupTypeAll, b(0, openflow.PortAny), b(1, 0), true},
		{openflow.GroupTypeSelect, b(1, openflow.PortAny), b(2, openflow.PortAny), false},
		{openflow.GroupTypeFF, b(0, 1), b(0, 2), false},
		{openflow.GroupTypeFF, b(0, 1), b(7, 1), true},
	} {
		before := fmt.Sprint(c.have)
		if got := sameGroup(Group{ID: 1, Kind: c.kind, Buckets: c.want}, openflow.GroupDesc{Group: 1, Kind: c.kind, Buckets: c.have}); got != c.same {
			t.Errorf("kind %v, %v and %v: %v", c.kind, c.want, c.have, got)
		}
		if fmt.Sprint(c.have) != before {
			t.Error("the comparison changes what it compares")
		}
	}
}

// BenchmarkDiff compares 1,000 flows that are right: a re-sync of a switch.
func BenchmarkDiff(b *testing.B) {
	var p Program
	var s State
	for n := range 1000 {
		match := openflow.Match{openflow.EthDst(openflow.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)}), openflow.NoVLAN()}
		do := openflow.Instructions{openflow.ApplyActions{Actions: openflow.Actions{openflow.Output{Port: openflow.PortNo(n%48 + 1)}}}}
		p.Flows = append(p.Flows, Flow{Table: 2, Priority: 10, Match: match, Cookie: ours.Cookie, Instructions: do})
		s.Flows = append(s.Flows, openflow.FlowStats{Table: 2, Priority: 10, Match: match, Cookie: ours.Cookie, Instructions: do})
	}
	b.ReportAllocs()
	for b.Loop() {
		if plan, err := Diff(p, s, ours); err != nil || changes(plan) > 0 {
			b.Fatal(plan, err)
		}
	}
}

// changes returns the number of changes of a plan.
func changes(p Plan) (n int) {
	for _, s := range p.Steps {
		n += len(s)
	}
	return n
}
