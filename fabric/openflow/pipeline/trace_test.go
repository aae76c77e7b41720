package pipeline_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

const ports, tables, groups = 4, 3, 3

// device is a switch with ports that record what they send.
func device(t interface{ Fatal(...any) }) (s *oftest.Switch, sent *[]string) {
	s, sent = oftest.New(oftest.Options{Tables: tables, NoLocalPort: true}), &[]string{}
	for no := of.PortNo(1); no <= ports; no++ {
		if err := s.AddPort(oftest.PortOptions{No: no}); err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(no, func(frame []byte) { *sent = append(*sent, out(no, frame)) }); err != nil {
			t.Fatal(err)
		}
	}
	return s, sent
}

func out(port of.PortNo, frame []byte) string { return fmt.Sprintf("%v %x", port, frame) }

func trace(s *oftest.Switch, frame []byte, in of.PortNo) []pipeline.Step {
	steps, _ := pipeline.NewTables(s.Flows(), s.Groups(), s.Ports()).Trace(frame, in, nil)
	return steps
}

func actions(t *rapid.T, groups int, label string) (all of.Actions) {
	for i := range rapid.IntRange(0, 3).Draw(t, label) {
		kinds := []of.Action{
			of.PushVLAN{EthType: pipeline.EtherVLAN}, of.PopVLAN{}, of.SetField{Field: of.EthDst(of.MAC{2, 0, 0, 0, 0, 9})}, of.DecNwTTL{},
			of.Output{Port: of.PortNo(rapid.IntRange(1, ports+1).Draw(t, "port"))}, of.Output{Port: of.PortInPort}, of.Output{Port: of.PortAll}, of.Output{Port: of.PortController},
		}
		if groups > 0 {
			kinds = append(kinds, of.Group{Group: of.GroupID(rapid.IntRange(1, groups).Draw(t, "group"))})
		}
		all = append(all, rapid.SampledFrom(kinds).Draw(t, fmt.Sprint(label, i)))
	}
	return all
}

func match(t *rapid.T) (m of.Match) {
	if rapid.Bool().Draw(t, "in_port") {
		m = append(m, of.InPort(of.PortNo(rapid.IntRange(1, ports).Draw(t, "in"))))
	}
	if rapid.IntRange(0, 3).Draw(t, "metadata") == 0 {
		m = append(m, of.MetadataMasked(uint64(rapid.IntRange(0, 1).Draw(t, "value")), 1))
	}
	return append(m, rapid.SampledFrom([]of.Match{nil, {of.AnyVLAN()}, {of.NoVLAN()}, {of.EthType(pipeline.EtherIPv4), of.IPProto(pipeline.ProtocolUDP)}}).Draw(t, "match")...)
}

// Whatever flows, groups and ports a switch has, the trace of a frame has what the switch sends, in its order.
func TestTraceIsWhatTheSwitchDoes(t *testing.T) {
	delivered := 0
	rapid.Check(t, func(t *rapid.T) {
		s, sent := device(t)
		for id := 1; id <= groups; id++ {
			kind := rapid.SampledFrom([]of.GroupType{of.GroupTypeAll, of.GroupTypeIndirect, of.GroupTypeFF}).Draw(t, "kind")
			mod := &of.GroupMod{Group: of.GroupID(id), Kind: kind}
			n := 1
			if kind != of.GroupTypeIndirect {
				n = rapid.IntRange(1, 3).Draw(t, "buckets")
			}
			for range n {
				b := of.Bucket{WatchPort: of.PortAny, WatchGroup: of.GroupAny, Actions: actions(t, id-1, "bucket")}
				if kind == of.GroupTypeFF {
					b.WatchPort = of.PortNo(rapid.IntRange(1, ports).Draw(t, "watch"))
				}
				mod.Buckets = append(mod.Buckets, b)
			}
			if err := s.Do(mod); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "flows") {
			table := rapid.IntRange(0, tables-1).Draw(t, "table")
			do := of.Instructions{of.ApplyActions{Actions: actions(t, groups, "apply")}}
			if rapid.Bool().Draw(t, "clear") {
				do = append(do, of.ClearActions{})
			}
			do = append(do, of.WriteActions{Actions: actions(t, groups, "write")}, of.WriteMetadata{Metadata: uint64(rapid.IntRange(0, 1).Draw(t, "set")), Mask: 1})
			if table < tables-1 {
				do = append(do, of.GotoTable{Table: of.TableID(table + 1)})
			}
			_ = s.Do(&of.FlowMod{ // one that does not fit its match is refused
				Table: of.TableID(table), Priority: uint16(rapid.IntRange(0, 2).Draw(t, "priority")), Match: match(t), Instructions: do,
				Buffer: of.NoBuffer, OutPort: of.PortAny, OutGroup: of.GroupAny,
			})
		}
		for no := of.PortNo(1); no <= ports; no++ {
			s.SetLink(no, rapid.IntRange(0, 4).Draw(t, "up") > 0)
		}
		from, to := netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:7")
		frame := oftest.UDPFrame(of.MAC{2, 1}, of.MAC{2, 2}, from, to, 60)
		in := of.PortNo(rapid.IntRange(1, ports).Draw(t, "arrives"))
		var said []string
		for _, st := range trace(s, frame, in) {
			if st.Kind == pipeline.Output && st.Why == pipeline.None {
				said = append(said, out(st.Port, st.Frame))
			}
		}
		s.Receive(in, frame)
		if !slices.Equal(said, *sent) {
			t.Fatalf("the trace has\n%s\nthe switch sends\n%s", strings.Join(said, "\n"), strings.Join(*sent, "\n"))
		}
		delivered += len(said)
	})
	if delivered == 0 {
		t.Error("no switch sent anything")
	}
}

// A packet that goes nowhere has the reason.
func TestReasons(t *testing.T) {
	udp := of.Match{of.EthType(pipeline.EtherIPv4), of.IPProto(pipeline.ProtocolUDP)}
	apply := func(a ...of.Action) of.Instructions { return of.Instructions{of.ApplyActions{Actions: a}} }
	flow := func(table of.TableID, do of.Instructions, m ...of.Field) of.FlowStats {
		return of.FlowStats{Table: table, Priority: 1, Match: m, Instructions: do}
	}
	bucket := func(watch of.PortNo, a ...of.Action) of.Bucket {
		return of.Bucket{Weight: 1, WatchPort: watch, WatchGroup: of.GroupAny, Actions: a}
	}
	register, err := of.NewField(0x8001<<7, []byte{0, 0, 0, 1}, nil) // OXM_OF_PKT_REG(0) of OpenFlow 1.5
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		flows  []of.FlowStats
		groups []of.GroupDesc
		in     of.PortNo
		want   string
	}{
		{"no flow", nil, nil, 1, "table 0: -; no flow matches"},
		{"no flow in a later table", []of.FlowStats{flow(0, of.Instructions{of.GotoTable{Table: 1}})}, nil, 1, "table 0: goto_table:1; table 1: -; no flow matches"},
		{"explicit drop", []of.FlowStats{flow(0, nil, udp...)}, nil, 1, "table 0: drop; the flows have no output"},
		{"down", []of.FlowStats{flow(0, apply(of.Output{Port: 3}))}, nil, 1, "table 0: output:3; out 3: the port is down"},
		{"arrives at a port that is down", []of.FlowStats{flow(0, apply(of.Output{Port: 1}))}, nil, 3, "the port is down"},
		{"no such port", []of.FlowStats{flow(0, apply(of.Output{Port: 9}))}, nil, 1, "table 0: output:9; out 9: the port does not exist"},
		{"blocked", []of.FlowStats{flow(0, apply(of.Output{Port: 4}))}, nil, 1, "table 0: output:4; out 4: the port is set to pass nothing"},
		{"back", []of.FlowStats{flow(0, apply(of.Output{Port: 1}))}, nil, 1, "table 0: output:1; output:1: the frame came from this port"},
		{"NORMAL", []of.FlowStats{flow(0, apply(of.Output{Port: of.PortNormal}))}, nil, 1, "table 0: NORMAL; NORMAL: only the switch knows its effect"},
		{"no group", []of.FlowStats{flow(0, apply(of.Group{Group: 7}))}, nil, 1, "table 0: group:7; group:7: the group does not exist"},
		{"no bucket", []of.FlowStats{flow(0, apply(of.Group{Group: 7}))}, []of.GroupDesc{{Kind: of.GroupTypeFF, Group: 7, Buckets: []of.Bucket{bucket(3, of.Output{Port: 3})}}}, 1,
			"table 0: group:7; group:7: no bucket is live"},
		{"failover", []of.FlowStats{flow(0, apply(of.Group{Group: 7}))}, []of.GroupDesc{{Kind: of.GroupTypeFF, Group: 7, Buckets: []of.Bucket{bucket(3, of.Output{Port: 3}), bucket(2, of.Output{Port: 2})}}}, 1,
			"table 0: group:7; bucket 1 of group 7;  out 2"},
		{"each bucket of a select group", []of.FlowStats{flow(0, apply(of.Group{Group: 7}))}, []of.GroupDesc{{Kind: of.GroupTypeSelect, Group: 7, Buckets: []of.Bucket{bucket(of.PortAny, of.Output{Port: 1}), bucket(of.PortAny, of.Output{Port: 2})}}}, 1,
			"table 0: group:7; bucket 0 of group 7;  output:1: the frame came from this port; bucket 1 of group 7;  out 2"},
		{"groups that watch each other", []of.FlowStats{flow(0, apply(of.Group{Group: 7}))}, []of.GroupDesc{
			{Kind: of.GroupTypeFF, Group: 7, Buckets: []of.Bucket{{WatchPort: of.PortAny, WatchGroup: 8}, {WatchPort: of.PortAny, WatchGroup: 8}}},
			{Kind: of.GroupTypeFF, Group: 8, Buckets: []of.Bucket{{WatchPort: of.PortAny, WatchGroup: 7}, {WatchPort: of.PortAny, WatchGroup: 7}}}}, 1,
			"table 0: group:7; group:7: no bucket is live"},
		{"a table before", []of.FlowStats{flow(0, of.Instructions{of.GotoTable{Table: 0}})}, nil, 1, "table 0: goto_table:0; the flows have no output"},
		{"TTL", []of.FlowStats{flow(0, apply(of.SetNwTTL{TTL: 1}, of.DecNwTTL{}, of.Output{Port: 2}))}, nil, 1, "table 0: mod_nw_ttl:1,dec_ttl,output:2; to the controller: 2"},
		{"meter", []of.FlowStats{flow(0, append(of.Instructions{of.Meter{Meter: 5}}, apply(of.Output{Port: 2})...))}, nil, 1, "table 0: meter:5,output:2; meter 5; out 2"},
		{"a field of another program", []of.FlowStats{
			{Priority: 9, Match: of.Match{register}, Instructions: apply(of.Output{Port: 4})}, flow(0, apply(of.Output{Port: 2}))}, nil, 1,
			"table 0: output:2 unless priority 9; out 2"},
	} {
		tables := pipeline.NewTables(c.flows, c.groups, []of.Port{{No: 1}, {No: 2}, {No: 3, State: of.PortLinkDown}, {No: 4, Config: of.PortNoFwd}})
		from, to := netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:7")
		var steps []string
		all, whole := tables.Trace(oftest.UDPFrame(of.MAC{2, 1}, of.MAC{2, 2}, from, to, 60), c.in, nil)
		if !whole {
			t.Errorf("%s: the trace is cut", c.name)
		}
		for _, s := range all {
			steps = append(steps, strings.Repeat(" ", s.Depth)+text(s))
		}
		if got := strings.Join(steps, "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// manyGroups are groups of which each bucket sends a frame to the next group: with n of them there are buckets to the power of n copies.
func manyGroups(groups of.GroupID, buckets int, kind of.GroupType) (all []of.GroupDesc) {
	for id := of.GroupID(1); id <= groups; id++ {
		one := of.GroupDesc{Kind: kind, Group: id}
		for range buckets {
			b := of.Bucket{WatchPort: of.PortAny, WatchGroup: of.GroupAny, Actions: of.Actions{of.Group{Group: id + 1}}}
			switch {
			case kind == of.GroupTypeFF:
				b.WatchGroup = id + 1
			case id == groups:
				b.Actions = of.Actions{of.PushVLAN{EthType: pipeline.EtherVLAN}, of.Output{Port: 2}}
			}
			one.Buckets = append(one.Buckets, b)
		}
		all = append(all, one)
	}
	return all
}

// A trace ends where its budget of steps or of bytes is spent, and where a switch has to look at too much for a step.
func TestTraceBudget(t *testing.T) {
	frame := oftest.UDPFrame(of.MAC{2, 1}, of.MAC{2, 2}, netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:7"), 60)
	flow := of.FlowStats{Instructions: of.Instructions{of.ApplyActions{Actions: of.Actions{of.Group{Group: 1}}}}}
	all := pipeline.NewTables([]of.FlowStats{flow}, manyGroups(3, 10, of.GroupTypeAll), []of.Port{{No: 1}, {No: 2}})
	watch := pipeline.NewTables([]of.FlowStats{flow}, manyGroups(200, 4000, of.GroupTypeFF), []of.Port{{No: 1}, {No: 2}})
	for _, c := range []struct {
		name         string
		tables       *pipeline.Tables
		steps, bytes int
		want         int
		whole        bool
	}{
		{"as many steps as it has", all, 1 + 10 + 100 + 2000, 1 << 20, 2111, true},
		{"one less", all, 2110, 1 << 20, 2110, false},
		{"a frame of 64 bytes, and one less than another", all, 1 << 20, 64 + 63, 2111, true}, // they are the same
		{"no frame", all, 1 << 20, 63, 1 + 3, false},
		{"much work for no step", watch, 1 << 20, 1 << 20, 1, false},
	} {
		got, whole := c.tables.Trace(frame, 1, pipeline.NewBudget(c.steps, c.bytes))
		if len(got) != c.want || whole != c.whole {
			t.Errorf("%s: %d steps, whole: %v; want %d and %v", c.name, len(got), whole, c.want, c.whole)
		}
	}
}

func text(s pipeline.Step) (line string) {
	switch s.Kind {
	case pipeline.Lookup:
		line = fmt.Sprintf("table %d: -", s.Table)
		if s.Flow != nil {
			line = fmt.Sprintf("table %d: %v", s.Table, s.Flow.Instructions)
		}
		for _, f := range s.Unsure {
			line += fmt.Sprintf(" unless priority %d", f.Priority)
		}
	case pipeline.Metered:
		line = fmt.Sprintf("meter %d", s.Meter)
	case pipeline.InBucket:
		line = fmt.Sprintf("bucket %d of group %d", s.Bucket, s.Group.ID)
	case pipeline.Output:
		line = fmt.Sprintf("out %v", s.Port)
		if s.Why != pipeline.None {
			line += ": " + s.Why.String()
		}
	case pipeline.Controller:
		line = fmt.Sprintf("to the controller: %d", s.Reason)
	case pipeline.Skipped:
		line = s.What + ": " + s.Why.String()
	case pipeline.Dropped:
		line = s.Why.String()
	}
	return line
}
