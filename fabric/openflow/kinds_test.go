package openflow

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"
)

// kinds draws one message of each kind.
var kinds = []struct {
	name string
	draw func(g gen) Message
}{
	{"hello", func(g gen) Message {
		// ovs-ofctl does not know versions above 31, nor os-ken that.
		h := NewHello(rapid.SliceOfNDistinct(rapid.Uint8Range(1, 30), 1, 4, rapid.ID).Draw(g.T, "versions")...)
		if !g.tame && g.flip("more") {
			h.Elements = append(h.Elements, HelloElement{Kind: 9, Body: g.bytes(5)})
		}
		return h
	}},
	{"error", func(g gen) Message {
		t := ErrorType(1 + upTo(g, len(codeNames)-2, "type"))
		e := &Error{Kind: t, Code: uint16(upTo(g, len(codeNames[t])-1, "code"))}
		e.Data, _ = Append(nil, 7, &BarrierRequest{})
		if !g.tame && g.flip("experimenter") {
			e.Kind, e.Experimenter = ErrExperimenter, num[uint32](g, "id")
		}
		return e
	}},
	{"error/hello", func(g gen) Message {
		return &Error{Kind: ErrHelloFailed, Code: uint16(upTo(g, 1, "code")), Data: []byte(g.text(10))}
	}},
	{"error/bundle", func(g gen) Message {
		e := &Error{Kind: ErrExperimenter, Experimenter: ONF, Code: firstBundleError + uint16(upTo(g, len(bundleCodeNames)-1, "code"))}
		e.Data, _ = Append(nil, 7, &BarrierRequest{})
		return e
	}},
	{"echo-request", func(g gen) Message { return &EchoRequest{g.bytes(9)} }},
	{"echo-reply", func(g gen) Message { return &EchoReply{g.bytes(9)} }},
	{"experimenter", func(g gen) Message {
		return &Experimenter{num[uint32](g, "id"), num[uint32](g, "type"), g.bytes(9)}
	}},
	{"bundle-control", func(g gen) Message {
		b := &BundleControl{ID: num[uint32](g, "id"), Control: BundleControlType(upTo(g, 7, "type")), Flags: BundleFlags(upTo(g, 3, "flags"))}
		if !g.tame {
			b.Properties = few(g, 2, "properties", func() BundleProperty { return BundleProperty{0xffff, g.bytes(5)} })
		}
		return b
	}},
	{"bundle-add", func(g gen) Message {
		b := &BundleAdd{ID: num[uint32](g, "id"), Flags: BundleFlags(upTo(g, 3, "flags")), Message: g.flowMod()}
		if !g.tame {
			b.Properties = few(g, 2, "properties", func() BundleProperty { return BundleProperty{0xffff, g.bytes(5)} })
		}
		return b
	}},
	{"features-request", func(gen) Message { return &FeaturesRequest{} }},
	{"features-reply", func(g gen) Message {
		return &FeaturesReply{DatapathID: num[uint64](g, "dpid"), Buffers: num[uint32](g, "buffers"), Tables: num[uint8](g, "tables"),
			AuxiliaryID: num[uint8](g, "aux"), Capabilities: g.bits(CapFlowStats, CapTableStats, CapPortStats, CapGroupStats, CapIPReasm, CapQueueStats, CapPortBlocked)}
	}},
	{"get-config-request", func(gen) Message { return &GetConfigRequest{} }},
	{"get-config-reply", func(g gen) Message { return &GetConfigReply{g.config()} }},
	{"set-config", func(g gen) Message { return &SetConfig{g.config()} }},
	{"packet-in", func(g gen) Message {
		data := g.frame()
		m := &PacketIn{Buffer: num[uint32](g, "buffer"), TotalLen: uint16(len(data)), Reason: PacketInReason(upTo(g, 2, "reason")),
			Table: num[TableID](g, "table"), Cookie: num[uint64](g, "cookie"), Match: Match{InPort(g.port())}, Data: data}
		if v := num[uint64](g, "metadata"); v != 0 {
			m.Match = append(m.Match, Metadata(v))
		}
		if v := num[uint64](g, "tunnel"); v != 0 {
			m.Match = append(m.Match, TunnelID(v))
		}
		return m
	}},
	{"flow-removed", func(g gen) Message {
		return &FlowRemoved{Cookie: num[uint64](g, "cookie"), Priority: num[uint16](g, "priority"), Reason: FlowRemovedReason(upTo(g, 3, "reason")),
			Table: num[TableID](g, "table"), Duration: g.duration(), IdleTimeout: num[uint16](g, "idle"), HardTimeout: num[uint16](g, "hard"),
			Packets: num[uint64](g, "packets"), Bytes: num[uint64](g, "bytes"), Match: g.match()}
	}},
	{"port-status", func(g gen) Message { return &PortStatus{PortReason(upTo(g, 2, "reason")), g.portDesc()} }},
	{"packet-out", func(g gen) Message {
		m := &PacketOut{Buffer: num[uint32](g, "buffer"), InPort: g.port(PortController, PortLocal), Actions: g.actions()}
		if m.Buffer == NoBuffer {
			m.Data = g.frame()
		}
		return m
	}},
	{"flow-mod", func(g gen) Message { return g.flowMod() }},
	{"group-mod", func(g gen) Message {
		m := &GroupMod{Command: GroupCommand(upTo(g, 2, "command")), Kind: GroupType(upTo(g, 3, "type")), Group: g.group()}
		if m.Command != GroupDelete {
			m.Buckets = g.buckets(m.Kind)
		} else if g.tame {
			m.Kind = GroupTypeAll
		}
		return m
	}},
	{"port-mod", func(g gen) Message {
		m := &PortMod{No: g.port(PortLocal), HWAddr: g.mac(), Config: g.portConfig(), Mask: g.portConfig(), Advertise: g.features()}
		if g.tame {
			m.Config &= m.Mask // ovs-ofctl prints only these
		}
		return m
	}},
	{"table-mod", func(g gen) Message {
		m := &TableMod{Table: num[TableID](g, "table")}
		if !g.tame {
			m.Config = num[uint32](g, "config")
		}
		return m
	}},
	{"barrier-request", func(gen) Message { return &BarrierRequest{} }},
	{"barrier-reply", func(gen) Message { return &BarrierReply{} }},
	{"queue-get-config-request", func(g gen) Message { return &QueueGetConfigRequest{g.port(PortAny)} }},
	{"queue-get-config-reply", func(g gen) Message {
		p := g.port()
		m := &QueueGetConfigReply{Port: p}
		draw := func() Queue {
			q := Queue{ID: QueueID(upTo(g, 1<<20, "queue")), Port: p}
			for _, kind := range []QueuePropertyType{QueueMinRate, QueueMaxRate} {
				if g.flip("rate") {
					q.Properties = append(q.Properties, QueueProperty{Kind: kind, Rate: uint16(upTo(g, 1000, "rate"))})
				}
			}
			if !g.tame && g.flip("other") {
				q.Properties = append(q.Properties, QueueProperty{Kind: QueueExperimenter, Experimenter: num[uint32](g, "id"), Body: g.bytes8(0)},
					QueueProperty{Kind: 7, Body: g.bytes8(0)})
			}
			return q
		}
		if m.Queues = few(g, 3, "queues", draw); g.tame && m.Queues == nil {
			m.Queues = []Queue{draw()} // ovs-ofctl prints a port only with queues
		}
		return m
	}},
	{"role-request", func(g gen) Message { return &RoleRequest{g.role()} }},
	{"role-reply", func(g gen) Message { return &RoleReply{g.role()} }},
	{"get-async-request", func(gen) Message { return &GetAsyncRequest{} }},
	{"get-async-reply", func(g gen) Message { return &GetAsyncReply{g.async()} }},
	{"set-async", func(g gen) Message { return &SetAsync{g.async()} }},
	{"meter-mod", func(g gen) Message {
		m := &MeterMod{Command: MeterCommand(upTo(g, 2, "command")), Flags: g.meterFlags(), Meter: g.meter()}
		if m.Command != MeterDelete {
			m.Bands = g.bands(m.Flags)
		} else if g.tame {
			m.Flags = 0
		}
		return m
	}},
	{"unknown", func(g gen) Message { return &Unknown{Type(30 + upTo(g, 225, "type")), g.bytes(9)} }},

	{"desc request", request(func(gen) RequestBody { return &DescRequest{} })},
	{"flow request", request(func(g gen) RequestBody { return &FlowStatsRequest{g.filter()} })},
	{"aggregate request", request(func(g gen) RequestBody { return &AggregateRequest{g.filter()} })},
	{"table request", request(func(gen) RequestBody { return &TableStatsRequest{} })},
	{"port-stats request", request(func(g gen) RequestBody { return &PortStatsRequest{g.port(PortAny)} })},
	{"queue request", request(func(g gen) RequestBody {
		return &QueueStatsRequest{g.port(PortAny), num[QueueID](g, "queue")}
	})},
	{"group request", request(func(g gen) RequestBody { return &GroupStatsRequest{g.group(GroupAll)} })},
	{"group-desc request", request(func(gen) RequestBody { return &GroupDescRequest{} })},
	{"group-features request", request(func(gen) RequestBody { return &GroupFeaturesRequest{} })},
	{"meter request", request(func(g gen) RequestBody { return &MeterStatsRequest{g.meter()} })},
	{"meter-config request", request(func(g gen) RequestBody { return &MeterConfigRequest{g.meter()} })},
	{"meter-features request", request(func(gen) RequestBody { return &MeterFeaturesRequest{} })},
	{"table-features request", request(func(g gen) RequestBody { return g.tableFeatures() })},
	{"port-desc request", request(func(gen) RequestBody { return &PortDescRequest{} })},
	{"experimenter request", request(func(g gen) RequestBody { return g.experimenterBody() })},
	{"unknown request", request(func(g gen) RequestBody { return &UnknownMultipart{99, g.bytes(9)} })},

	{"desc reply", reply(func(g gen) ReplyBody { return &Desc{g.text(9), g.text(9), g.text(9), g.text(9), g.text(9)} })},
	{"flow reply", reply(func(g gen) ReplyBody { return &FlowStatsReply{few(g, 3, "flows", g.flowStats)} })},
	{"aggregate reply", reply(func(g gen) ReplyBody {
		return &Aggregate{num[uint64](g, "packets"), num[uint64](g, "bytes"), num[uint32](g, "flows")}
	})},
	{"table reply", reply(func(g gen) ReplyBody {
		return &TableStatsReply{few(g, 3, "tables", func() TableStats {
			return TableStats{num[TableID](g, "table"), num[uint32](g, "active"), num[uint64](g, "lookups"), num[uint64](g, "matched")}
		})}
	})},
	{"port-stats reply", reply(func(g gen) ReplyBody { return &PortStatsReply{few(g, 3, "ports", g.portStats)} })},
	{"queue reply", reply(func(g gen) ReplyBody {
		return &QueueStatsReply{few(g, 3, "queues", func() QueueStats {
			return QueueStats{g.port(), QueueID(upTo(g, 1<<20, "queue")), num[uint64](g, "bytes"), num[uint64](g, "packets"), num[uint64](g, "errors"), g.duration()}
		})}
	})},
	{"group reply", reply(func(g gen) ReplyBody {
		return &GroupStatsReply{few(g, 3, "groups", func() GroupStats {
			return GroupStats{g.group(), num[uint32](g, "refs"), num[uint64](g, "packets"), num[uint64](g, "bytes"), g.duration(), few(g, 3, "buckets", g.counter)}
		})}
	})},
	{"group-desc reply", reply(func(g gen) ReplyBody {
		return &GroupDescReply{few(g, 3, "groups", func() GroupDesc {
			t := GroupType(upTo(g, 3, "type"))
			return GroupDesc{t, g.group(), g.buckets(t)}
		})}
	})},
	{"group-features reply", reply(func(g gen) ReplyBody {
		f := &GroupFeatures{Types: uint32(upTo(g, 15, "types")), Capabilities: uint32(upTo(g, 15, "capabilities"))}
		for i := range 4 {
			f.MaxGroups[i] = num[uint32](g, "max")
			f.Actions[i] = uint32(g.bits(1<<0, 1<<15, 1<<16, 1<<17, 1<<18, 1<<19, 1<<20, 1<<21, 1<<22, 1<<23, 1<<24, 1<<25))
		}
		return f
	})},
	{"meter reply", reply(func(g gen) ReplyBody {
		return &MeterStatsReply{few(g, 3, "meters", func() MeterCounters {
			return MeterCounters{g.meter(), num[uint32](g, "flows"), num[uint64](g, "packets"), num[uint64](g, "bytes"), g.duration(), few(g, 3, "bands", g.counter)}
		})}
	})},
	{"meter-config reply", reply(func(g gen) ReplyBody {
		return &MeterConfigReply{few(g, 3, "meters", func() MeterConfig {
			f := g.meterFlags()
			return MeterConfig{f, g.meter(), g.bands(f)}
		})}
	})},
	{"meter-features reply", reply(func(g gen) ReplyBody {
		return &MeterFeatures{num[uint32](g, "max"), uint32(g.bits(1<<1, 1<<2)), uint32(upTo(g, 15, "capabilities")), num[uint8](g, "bands"), num[uint8](g, "color")}
	})},
	{"table-features reply", reply(func(g gen) ReplyBody { return g.tableFeatures() })},
	{"port-desc reply", reply(func(g gen) ReplyBody {
		ports := few(g, 3, "ports", g.portDesc)
		slices.SortFunc(ports, func(a, b Port) int { return cmp.Compare(a.No, b.No) }) // ovs-ofctl sorts them
		return &PortDescReply{ports}
	})},
	{"experimenter reply", reply(func(g gen) ReplyBody { return g.experimenterBody() })},
	{"unknown reply", reply(func(g gen) ReplyBody { return &UnknownMultipart{99, g.bytes(9)} })},
}

func request(draw func(g gen) RequestBody) func(gen) Message {
	return func(g gen) Message { return &MultipartRequest{More: !g.tame && g.flip("more"), Body: draw(g)} }
}

func reply(draw func(g gen) ReplyBody) func(gen) Message {
	return func(g gen) Message { return &MultipartReply{More: !g.tame && g.flip("more"), Body: draw(g)} }
}

func (g gen) bits(all ...Capabilities) (v Capabilities) {
	for _, bit := range all {
		if g.flip("bit") {
			v |= bit
		}
	}
	return v
}

func (g gen) config() Config {
	return Config{ConfigFlags(upTo(g, 2, "flags")), num[uint16](g, "len")}
}

func (g gen) flowMod() *FlowMod {
	m := &FlowMod{Cookie: num[uint64](g, "cookie"), Table: TableID(upTo(g, 253, "table")), Command: FlowCommand(upTo(g, 4, "command")),
		IdleTimeout: num[uint16](g, "idle"), HardTimeout: num[uint16](g, "hard"), Priority: num[uint16](g, "priority"), Buffer: num[uint32](g, "buffer"),
		OutPort: g.port(PortAny), OutGroup: g.group(GroupAny), Flags: FlowFlags(upTo(g, 31, "flags")), Match: g.match()}
	g.plain = g.tame // Open vSwitch compares the actions of a flow-mod with its match
	m.Instructions = g.instructions(m.Table)
	if m.Command >= FlowDelete && g.flip("all tables") {
		m.Table, m.Instructions = AllTables, nil
	}
	if m.Command != FlowAdd || !g.tame {
		m.CookieMask = num[uint64](g, "cookie mask")
	}
	return m
}

func (g gen) flowStats() FlowStats {
	f := FlowStats{Table: TableID(upTo(g, 253, "table")), Duration: g.duration(), Priority: num[uint16](g, "priority"), IdleTimeout: num[uint16](g, "idle"),
		HardTimeout: num[uint16](g, "hard"), Flags: FlowFlags(upTo(g, 31, "flags")), Cookie: num[uint64](g, "cookie"), Packets: num[uint64](g, "packets"),
		Bytes: num[uint64](g, "bytes"), Match: g.match()}
	f.Instructions = g.instructions(f.Table)
	return f
}

func (g gen) filter() FlowFilter {
	return FlowFilter{num[TableID](g, "table"), g.port(PortAny), g.group(GroupAny), num[uint64](g, "cookie"), num[uint64](g, "mask"), g.match()}
}

func (g gen) portConfig() PortConfig {
	return PortConfig(g.bits(Capabilities(PortDown), Capabilities(PortNoRecv), Capabilities(PortNoFwd), Capabilities(PortNoPacketIn)))
}

func (g gen) features() PortFeatures { return PortFeatures(upTo(g, 65535, "features")) }

func (g gen) portDesc() Port {
	return Port{No: g.port(PortLocal), HWAddr: g.mac(), Name: g.text(9), Config: g.portConfig(), State: PortState(upTo(g, 7, "state")),
		Current: g.features(), Advertised: g.features(), Supported: g.features(), Peer: g.features(), CurrSpeed: num[uint32](g, "speed"), MaxSpeed: num[uint32](g, "max")}
}

func (g gen) portStats() PortStats {
	n := func() uint64 { return num[uint64](g, "counter") }
	return PortStats{g.port(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), n(), g.duration()}
}

func (g gen) role() Role {
	r := Role{Role: ControllerRole(upTo(g, 3, "role"))}
	if r.Role == RoleMaster || r.Role == RoleSlave {
		r.GenerationID = num[uint64](g, "generation")
	}
	return r
}

func (g gen) async() (a Async) {
	for i := range 2 {
		a.PacketIn[i], a.PortStatus[i], a.FlowRemoved[i] = uint32(upTo(g, 7, "in")), uint32(upTo(g, 7, "port")), uint32(upTo(g, 15, "removed"))
	}
	return a
}

func (g gen) meterFlags() MeterFlags {
	return MeterFlags(1+upTo(g, 1, "unit")) | MeterFlags(upTo(g, 3, "flags"))<<2
}

func (g gen) counter() Counter { return Counter{num[uint64](g, "packets"), num[uint64](g, "bytes")} }

func (g gen) experimenterBody() *ExperimenterMultipart {
	return &ExperimenterMultipart{num[uint32](g, "id"), num[uint32](g, "type"), g.bytes(9)}
}

func (g gen) tableFeatures() *TableFeaturesList {
	draw := func() TableFeatures {
		f := TableFeatures{Table: TableID(upTo(g, 254, "table")), Name: g.text(9), MetadataMatch: num[uint64](g, "match"), MetadataWrite: num[uint64](g, "write"),
			MaxEntries: num[uint32](g, "entries")}
		if !g.tame {
			f.Config = num[uint32](g, "config")
		}
		for _, kind := range []TablePropertyType{TableInstructions, TableInstructionsMiss, TableNextTables, TableNextTablesMiss, TableWriteActions, TableWriteActionsMiss,
			TableApplyActions, TableApplyActionsMiss, TableMatch, TableWildcards, TableWriteSetField, TableWriteSetFieldMiss, TableApplySetField, TableApplySetFieldMiss} {
			if g.tame || g.flip("property") {
				f.Properties = append(f.Properties, g.tableProperty(kind))
			}
		}
		if !g.tame {
			f.Properties = append(f.Properties, TableProperty{Kind: TableExperimenterMiss, Body: g.bytes8(0)}, TableProperty{Kind: 33, Body: g.bytes(5)})
		}
		return f
	}
	if g.tame {
		return &TableFeaturesList{[]TableFeatures{draw()}} // of further tables ovs-ofctl prints only what differs
	}
	return &TableFeaturesList{few(g, 2, "tables", draw)}
}

func (g gen) tableProperty(kind TablePropertyType) TableProperty {
	p := TableProperty{Kind: kind}
	switch kind {
	case TableInstructions, TableInstructionsMiss:
		for t := InstructionGotoTable; t <= InstructionMeter; t++ {
			if g.flip("instruction") {
				p.Instructions = append(p.Instructions, InstructionID{Type: t})
			}
		}
	case TableNextTables, TableNextTablesMiss:
		p.Tables = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) TableID { return TableID(rapid.Uint8Range(0, 254).Draw(t, "table")) }), 0, 5, rapid.ID).Draw(g.T, "tables")
		slices.Sort(p.Tables)
		if len(p.Tables) == 0 {
			p.Tables = nil
		}
	case TableWriteActions, TableWriteActionsMiss, TableApplyActions, TableApplyActionsMiss:
		for _, t := range []ActionType{ActionOutput, ActionSetMPLSTTL, ActionDecMPLSTTL, ActionPushVLAN, ActionPopVLAN, ActionPushMPLS, ActionPopMPLS,
			ActionSetQueue, ActionGroup, ActionSetNwTTL, ActionDecNwTTL, ActionSetField} {
			if g.flip("action") {
				p.Actions = append(p.Actions, ActionID{Type: t})
			}
		}
	default:
		for _, id := range writable {
			if g.flip("field") {
				p.Fields = append(p.Fields, id.TypeOf(kind == TableMatch && id.info().maskable))
			}
		}
		if !g.tame {
			p.Fields = append(p.Fields, FieldType{ID: ClassExperimenter<<7 | 3, Length: 6, Experimenter: ONF})
		}
	}
	return p
}
