package program

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// What is lost is named, and nothing is at a switch that can do everything.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		caps fabric.Capabilities
		want []string // beginnings
	}{
		"everything":     {whole.Capabilities, nil},
		"not asked":      {fabric.Capabilities{}, nil},
		"one table":      {fabric.Capabilities{Tables: 1, FastFailover: 5000, All: 2, Select: 1, Meters: 1000, PacketMeters: true}, []string{"With 1 of 7 tables, all", "With 1 of 7 tables, a host", "With 1 of 7 tables, a bridge", "With 1 of 7 tables, connections", "With 1 of 7 tables, hosts there confirm"}},
		"no senders":     {fabric.Capabilities{Tables: 7, TCPFlags: true, FastFailover: 5000, All: 2, Select: 1, Meters: 1000, PacketMeters: true}, []string{"Without matches on the senders"}},
		"no flags":       {fabric.Capabilities{Tables: 7, Senders: true, FastFailover: 5000, All: 2, Select: 1, Meters: 1000, PacketMeters: true}, []string{"Without matches on the flags of TCP"}},
		"no groups":      {fabric.Capabilities{Tables: 7, Senders: true, TCPFlags: true, Select: 1, Meters: 1000, PacketMeters: true}, []string{"Without fast-failover groups"}},
		"few groups":     {fabric.Capabilities{Tables: 7, Senders: true, TCPFlags: true, FastFailover: 100, All: 100, Select: 1, Meters: 1000, PacketMeters: true}, []string{"With 100 fast-failover groups, frames to 49 switches"}},
		"no meters":      {fabric.Capabilities{Tables: 7, Senders: true, TCPFlags: true, FastFailover: 5000, All: 2, Select: 1}, []string{"Without meters"}},
		"byte meters":    {fabric.Capabilities{Tables: 7, Senders: true, TCPFlags: true, FastFailover: 5000, All: 2, Select: 1, Meters: 1000}, []string{"Without 256 meters"}},
		"small table":    {fabric.Capabilities{Tables: 7, Senders: true, TCPFlags: true, Entries: 1000, FastFailover: 5000, All: 2, Select: 1, Meters: 1000, PacketMeters: true}, []string{"With 1000 flows"}},
		"nothing at all": {fabric.Capabilities{Tables: 1, Entries: 1000}, []string{"With 1", "With 1", "With 1", "With 1", "With 1", "Without fast", "Without select", "Without meters", "With 1000"}},
	} {
		got := Lost(c.caps)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for n, text := range got {
			if !strings.HasPrefix(text, c.want[n]) || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q, want %q", name, text, c.want[n])
			}
		}
	}
}

// features are those of tables that can do everything.
func features(tables int) (all []openflow.TableFeatures) {
	for n := range tables {
		f := openflow.TableFeatures{Table: openflow.TableID(n), MaxEntries: 1000, Properties: []openflow.TableProperty{
			{Kind: openflow.TableInstructions, Instructions: []openflow.InstructionID{{Type: openflow.InstructionApplyActions}, {Type: openflow.InstructionGotoTable}}},
			{Kind: openflow.TableNextTables}, {Kind: openflow.TableMatch},
		}}
		for next := n + 1; next < tables; next++ {
			f.Properties[1].Tables = append(f.Properties[1].Tables, openflow.TableID(next))
		}
		for id := openflow.FieldInPort; id <= openflow.FieldIPv6NDTLL; id++ {
			f.Properties[2].Fields = append(f.Properties[2].Fields, id.TypeOf(false))
		}
		all = append(all, f)
	}
	return all
}

// Tables that cannot do what the pipeline needs of them are not used.
func TestUsable(t *testing.T) {
	for name, c := range map[string]struct {
		tables, want, entries int
		change                func(f []openflow.TableFeatures)
	}{
		"everything":     {10, 10, 1000, func([]openflow.TableFeatures) {}},
		"few tables":     {6, 6, 1000, func([]openflow.TableFeatures) {}},
		"one is small":   {7, 7, 10, func(f []openflow.TableFeatures) { f[4].MaxEntries = 10 }},
		"it is not used": {8, 8, 1000, func(f []openflow.TableFeatures) { f[7].MaxEntries = 10 }},
		"no goto": {7, 2, 1000, func(f []openflow.TableFeatures) {
			f[2].Properties[0].Instructions = f[2].Properties[0].Instructions[:1]
		}},
		"no way on": {7, 3, 1000, func(f []openflow.TableFeatures) { f[3].Properties[1].Tables = nil }},
		"no priorities": {7, 5, 7, func(f []openflow.TableFeatures) {
			f[0].MaxEntries = 7
			f[5].Properties[2].Fields = slices.DeleteFunc(f[5].Properties[2].Fields, func(f openflow.FieldType) bool { return f.ID == openflow.FieldVLANPCP })
		}},
		"not even one": {7, 1, 1000, func(f []openflow.TableFeatures) { f[0].Properties[2].Fields = nil }},
	} {
		f := features(c.tables)
		c.change(f)
		if tables, entries := Usable(f, c.tables); tables != c.want || entries != c.entries {
			t.Errorf("%s: %d tables of %d entries, want %d of %d", name, tables, entries, c.want, c.entries)
		}
	}
	for name, want := range map[string]bool{"everything": true, "no link-layer address": false, "nothing described": true} {
		f := features(7)
		switch name {
		case "no link-layer address":
			f[TableSource].Properties[2].Fields = slices.DeleteFunc(f[TableSource].Properties[2].Fields, func(f openflow.FieldType) bool { return f.ID == openflow.FieldIPv6NDSLL })
			if tables, _ := Usable(f, 7); tables != 7 {
				t.Errorf("%s: %d tables, want all", name, tables)
			}
		case "nothing described":
			f = nil
		}
		if Senders(f) != want {
			t.Errorf("%s: senders %v, want %v", name, !want, want)
		}
	}
	if tables, entries := Usable(nil, 254); tables != 254 || entries != 0 {
		t.Errorf("a switch that describes no tables: %d tables of %d entries", tables, entries)
	}
}

// The list of fields that are needed is that of the programs.
func TestNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 2}, {0, 3}}, whole)
		used, asked := map[openflow.TableID]map[openflow.FieldID]bool{}, map[openflow.FieldID]bool{}
		for n := range w.sw {
			p, err := w.c.Program(fabric.DPID(n + 1))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Flows {
				if used[f.Table] == nil {
					used[f.Table] = map[openflow.FieldID]bool{}
				}
				for _, m := range f.Match {
					if k, _ := KindOf(f.Cookie); k == KindNeighbour && slices.Contains(senders, m.ID()) {
						asked[m.ID()] = true
						continue
					}
					used[f.Table][m.ID()] = true
				}
			}
		}
		if len(asked) != len(senders) {
			t.Errorf("rules for neighbours match %v, and the list has %v", asked, senders)
		}
		for table, fields := range needs {
			if len(used[openflow.TableID(table)]) != len(fields) {
				t.Errorf("table %d: the programs match %v, and the list has %v", table, used[openflow.TableID(table)], fields)
			}
			for _, id := range fields {
				if !used[openflow.TableID(table)][id] {
					t.Errorf("table %d: no program matches %v", table, id)
				}
			}
		}
	})
}

// Flows that quieten a port do not belong to a program, and a switch keeps them when it is brought to one.
func TestQuiet(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneBare} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, [][2]int{{0, 1}}, kind)
			flows := append(Quiet(kind.Capabilities, 1, Questions, 10), Quiet(kind.Capabilities, 1, Unknown, 10)...)
			if len(flows) < 6 {
				t.Errorf("%s: %d flows", name, len(flows))
			}
			for _, f := range flows {
				if f.HardTimeout != 10 || f.IdleTimeout != 0 {
					t.Errorf("%s: the flow to %s does not end", name, f.Why)
				}
				if err := w.sw[0].Do(f.Mod()); err != nil {
					t.Errorf("%s: to %s: %v", name, f.Why, err)
				}
				if _, r, ok := RuleOf(f.Table, f.Cookie); !ok || !strings.Contains(r.Matches, "a port that floods") {
					t.Errorf("%s: the flow to %s is of the rule %+v", name, f.Why, r)
				}
			}
			before := len(w.sw[0].Flows())
			if n := w.program(); n > 0 || len(w.sw[0].Flows()) != before {
				t.Errorf("%s: %d changes, %d flows of %d", name, n, len(w.sw[0].Flows()), before)
			}
			for _, f := range w.sw[0].Flows() {
				if k, ok := KindOf(f.Cookie); f.HardTimeout > 0 && (k != KindQuiet || !ok) {
					t.Errorf("%s: cookie %#x", name, f.Cookie)
				}
			}
		})
	}
}
