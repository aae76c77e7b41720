package judge

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Kind is a kind of messages.
type Kind struct {
	Name string
	// Draw returns a message of the kind.
	Draw func(Gen) openflow.Message
}

// Kinds are all kinds of messages of OpenFlow 1.3, and those that it does not define.
var Kinds = []Kind{
	{"hello", func(g Gen) openflow.Message {
		// ovs-ofctl does not know versions above 31, nor os-ken that.
		h := openflow.NewHello(g.distinct(1, 30, 1, 4)...)
		if !g.Tame && g.flip() {
			h.Elements = append(h.Elements, openflow.HelloElement{Kind: 9, Body: g.bytes(5)})
		}
		return h
	}},
	{"error", func(g Gen) openflow.Message {
		e := oneOf(g, errorsOf[helloErrors:]...)
		e = &openflow.Error{Kind: e.Kind, Code: e.Code}
		e.Data, _ = openflow.Append(nil, 7, &openflow.BarrierRequest{})
		if !g.Tame && g.flip() {
			e.Kind, e.Experimenter = openflow.ErrExperimenter, num[uint32](g)
		}
		return e
	}},
	{"error/hello", func(g Gen) openflow.Message {
		return &openflow.Error{Kind: openflow.ErrHelloFailed, Code: uint16(upTo(g, 1)), Data: []byte(g.text(10))}
	}},
	{"error/bundle", func(g Gen) openflow.Message {
		e := &openflow.Error{Kind: openflow.ErrExperimenter, Experimenter: openflow.ONF, Code: oneOf(g, bundleErrors...).Code}
		e.Data, _ = openflow.Append(nil, 7, &openflow.BarrierRequest{})
		return e
	}},
	{"echo-request", func(g Gen) openflow.Message { return &openflow.EchoRequest{Data: g.bytes(9)} }},
	{"echo-reply", func(g Gen) openflow.Message { return &openflow.EchoReply{Data: g.bytes(9)} }},
	{"experimenter", func(g Gen) openflow.Message {
		return &openflow.Experimenter{Experimenter: num[uint32](g), ExpType: num[uint32](g), Data: g.bytes(9)}
	}},
	{"bundle-control", func(g Gen) openflow.Message {
		b := &openflow.BundleControl{ID: num[uint32](g), Control: openflow.BundleControlType(upTo(g, 7)), Flags: openflow.BundleFlags(upTo(g, 3))}
		if !g.Tame {
			b.Properties = few(g, 2, func() openflow.BundleProperty { return openflow.BundleProperty{Kind: 0xffff, Body: g.bytes(5)} })
		}
		return b
	}},
	{"bundle-add", func(g Gen) openflow.Message {
		b := &openflow.BundleAdd{ID: num[uint32](g), Flags: openflow.BundleFlags(upTo(g, 3)), Message: g.flowMod()}
		if !g.Tame {
			b.Properties = few(g, 2, func() openflow.BundleProperty { return openflow.BundleProperty{Kind: 0xffff, Body: g.bytes(5)} })
		}
		return b
	}},
	{"features-request", func(Gen) openflow.Message { return &openflow.FeaturesRequest{} }},
	{"features-reply", func(g Gen) openflow.Message {
		return &openflow.FeaturesReply{DatapathID: num[uint64](g), Buffers: num[uint32](g), Tables: num[uint8](g),
			AuxiliaryID: num[uint8](g), Capabilities: g.bits(openflow.CapFlowStats, openflow.CapTableStats, openflow.CapPortStats, openflow.CapGroupStats, openflow.CapIPReasm, openflow.CapQueueStats, openflow.CapPortBlocked)}
	}},
	{"get-config-request", func(Gen) openflow.Message { return &openflow.GetConfigRequest{} }},
	{"get-config-reply", func(g Gen) openflow.Message { return &openflow.GetConfigReply{Config: g.config()} }},
	{"set-config", func(g Gen) openflow.Message { return &openflow.SetConfig{Config: g.config()} }},
	{"packet-in", func(g Gen) openflow.Message {
		data := g.frame()
		m := &openflow.PacketIn{Buffer: num[uint32](g), TotalLen: uint16(len(data)), Reason: openflow.PacketInReason(upTo(g, 2)),
			Table: num[openflow.TableID](g), Cookie: num[uint64](g), Match: openflow.Match{openflow.InPort(g.port())}, Data: data}
		if v := num[uint64](g); v != 0 {
			m.Match = append(m.Match, openflow.Metadata(v))
		}
		if v := num[uint64](g); v != 0 {
			m.Match = append(m.Match, openflow.TunnelID(v))
		}
		return m
	}},
	{"flow-removed", func(g Gen) openflow.Message {
		return &openflow.FlowRemoved{Cookie: num[uint64](g), Priority: num[uint16](g), Reason: openflow.FlowRemovedReason(upTo(g, 3)),
			Table: num[openflow.TableID](g), Duration: g.duration(), IdleTimeout: num[uint16](g), HardTimeout: num[uint16](g),
			Packets: num[uint64](g), Bytes: num[uint64](g), Match: g.match()}
	}},
	{"port-status", func(g Gen) openflow.Message {
		return &openflow.PortStatus{Reason: openflow.PortReason(upTo(g, 2)), Port: g.portDesc()}
	}},
	{"packet-out", func(g Gen) openflow.Message {
		m := &openflow.PacketOut{Buffer: num[uint32](g), InPort: g.port(openflow.PortController, openflow.PortLocal), Actions: g.actions()}
		if m.Buffer == openflow.NoBuffer {
			m.Data = g.frame()
		}
		return m
	}},
	{"flow-mod", func(g Gen) openflow.Message { return g.flowMod() }},
	{"group-mod", func(g Gen) openflow.Message {
		m := &openflow.GroupMod{Command: openflow.GroupCommand(upTo(g, 2)), Kind: openflow.GroupType(upTo(g, 3)), Group: g.group()}
		if m.Command != openflow.GroupDelete {
			m.Buckets = g.buckets(m.Kind)
		} else if g.Tame {
			m.Kind = openflow.GroupTypeAll
		}
		return m
	}},
	{"port-mod", func(g Gen) openflow.Message {
		m := &openflow.PortMod{No: g.port(openflow.PortLocal), HWAddr: g.mac(), Config: g.portConfig(), Mask: g.portConfig(), Advertise: g.features()}
		if g.Tame {
			m.Config &= m.Mask // ovs-ofctl prints only these
		}
		return m
	}},
	{"table-mod", func(g Gen) openflow.Message {
		m := &openflow.TableMod{Table: num[openflow.TableID](g)}
		if !g.Tame {
			m.Config = num[uint32](g)
		}
		return m
	}},
	{"barrier-request", func(Gen) openflow.Message { return &openflow.BarrierRequest{} }},
	{"barrier-reply", func(Gen) openflow.Message { return &openflow.BarrierReply{} }},
	{"queue-get-config-request", func(g Gen) openflow.Message { return &openflow.QueueGetConfigRequest{Port: g.port(openflow.PortAny)} }},
	{"queue-get-config-reply", func(g Gen) openflow.Message {
		p := g.port()
		m := &openflow.QueueGetConfigReply{Port: p}
		draw := func() openflow.Queue {
			q := openflow.Queue{ID: openflow.QueueID(upTo(g, 1<<20)), Port: p}
			for _, kind := range []openflow.QueuePropertyType{openflow.QueueMinRate, openflow.QueueMaxRate} {
				if g.flip() {
					q.Properties = append(q.Properties, openflow.QueueProperty{Kind: kind, Rate: uint16(upTo(g, 1000))})
				}
			}
			if !g.Tame && g.flip() {
				q.Properties = append(q.Properties, openflow.QueueProperty{Kind: openflow.QueueExperimenter, Experimenter: num[uint32](g), Body: g.bytes8(0)},
					openflow.QueueProperty{Kind: 7, Body: g.bytes8(0)})
			}
			return q
		}
		if m.Queues = few(g, 3, draw); g.Tame && m.Queues == nil {
			m.Queues = []openflow.Queue{draw()} // ovs-ofctl prints a port only with queues
		}
		return m
	}},
	{"role-request", func(g Gen) openflow.Message { return &openflow.RoleRequest{Role: g.role()} }},
	{"role-reply", func(g Gen) openflow.Message { return &openflow.RoleReply{Role: g.role()} }},
	{"get-async-request", func(Gen) openflow.Message { return &openflow.GetAsyncRequest{} }},
	{"get-async-reply", func(g Gen) openflow.Message { return &openflow.GetAsyncReply{Async: g.async()} }},
	{"set-async", func(g Gen) openflow.Message { return &openflow.SetAsync{Async: g.async()} }},
	{"meter-mod", func(g Gen) openflow.Message {
		m := &openflow.MeterMod{Command: openflow.MeterCommand(upTo(g, 2)), Flags: g.meterFlags(), Meter: g.meter()}
		if m.Command != openflow.MeterDelete {
			m.Bands = g.bands(m.Flags)
		} else if g.Tame {
			m.Flags = 0
		}
		return m
	}},
	{"unknown", func(g Gen) openflow.Message {
		return &openflow.Unknown{Kind: openflow.Type(30 + upTo(g, 225)), Body: g.bytes(9)}
	}},

	{"desc request", request(func(Gen) openflow.RequestBody { return &openflow.DescRequest{} })},
	{"flow request", request(func(g Gen) openflow.RequestBody { return &openflow.FlowStatsRequest{FlowFilter: g.filter()} })},
	{"aggregate request", request(func(g Gen) openflow.RequestBody { return &openflow.AggregateRequest{FlowFilter: g.filter()} })},
	{"table request", request(func(Gen) openflow.RequestBody { return &openflow.TableStatsRequest{} })},
	{"port-stats request", request(func(g Gen) openflow.RequestBody { return &openflow.PortStatsRequest{Port: g.port(openflow.PortAny)} })},
	{"queue request", request(func(g Gen) openflow.RequestBody {
		return &openflow.QueueStatsRequest{Port: g.port(openflow.PortAny), Queue: num[openflow.QueueID](g)}
	})},
	{"group request", request(func(g Gen) openflow.RequestBody {
		return &openflow.GroupStatsRequest{Group: g.group(openflow.GroupAll)}
	})},
	{"group-desc request", request(func(Gen) openflow.RequestBody { return &openflow.GroupDescRequest{} })},
	{"group-features request", request(func(Gen) openflow.RequestBody { return &openflow.GroupFeaturesRequest{} })},
	{"meter request", request(func(g Gen) openflow.RequestBody { return &openflow.MeterStatsRequest{Meter: g.meter()} })},
	{"meter-config request", request(func(g Gen) openflow.RequestBody { return &openflow.MeterConfigRequest{Meter: g.meter()} })},
	{"meter-features request", request(func(Gen) openflow.RequestBody { return &openflow.MeterFeaturesRequest{} })},
	{"table-features request", request(func(g Gen) openflow.RequestBody { return g.tableFeatures() })},
	{"port-desc request", request(func(Gen) openflow.RequestBody { return &openflow.PortDescRequest{} })},
	{"experimenter request", request(func(g Gen) openflow.RequestBody { return g.experimenterBody() })},
	{"unknown request", request(func(g Gen) openflow.RequestBody { return &openflow.UnknownMultipart{Type: 99, Data: g.bytes(9)} })},

	{"desc reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.Desc{Manufacturer: g.text(9), Hardware: g.text(9), Software: g.text(9), SerialNum: g.text(9), Datapath: g.text(9)}
	})},
	{"flow reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.FlowStatsReply{Flows: few(g, 3, g.flowStats)}
	})},
	{"aggregate reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.Aggregate{Packets: num[uint64](g), Bytes: num[uint64](g), Flows: num[uint32](g)}
	})},
	{"table reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.TableStatsReply{Tables: few(g, 3, func() openflow.TableStats {
			return openflow.TableStats{Table: num[openflow.TableID](g), Active: num[uint32](g), Lookups: num[uint64](g), Matched: num[uint64](g)}
		})}
	})},
	{"port-stats reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.PortStatsReply{Ports: few(g, 3, g.portStats)}
	})},
	{"queue reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.QueueStatsReply{Queues: few(g, 3, func() openflow.QueueStats {
			return openflow.QueueStats{Port: g.port(), Queue: openflow.QueueID(upTo(g, 1<<20)), TxBytes: num[uint64](g), TxPackets: num[uint64](g), TxErrors: num[uint64](g), Duration: g.duration()}
		})}
	})},
	{"group reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.GroupStatsReply{Groups: few(g, 3, func() openflow.GroupStats {
			return openflow.GroupStats{Group: g.group(), RefCount: num[uint32](g), Packets: num[uint64](g), Bytes: num[uint64](g), Duration: g.duration(), Buckets: few(g, 3, g.counter)}
		})}
	})},
	{"group-desc reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.GroupDescReply{Groups: few(g, 3, func() openflow.GroupDesc {
			t := openflow.GroupType(upTo(g, 3))
			return openflow.GroupDesc{Kind: t, Group: g.group(), Buckets: g.buckets(t)}
		})}
	})},
	{"group-features reply", reply(func(g Gen) openflow.ReplyBody {
		f := &openflow.GroupFeatures{Types: uint32(upTo(g, 15)), Capabilities: uint32(upTo(g, 15))}
		for i := range 4 {
			f.MaxGroups[i] = num[uint32](g)
			f.Actions[i] = uint32(g.bits(1<<0, 1<<15, 1<<16, 1<<17, 1<<18, 1<<19, 1<<20, 1<<21, 1<<22, 1<<23, 1<<24, 1<<25))
		}
		return f
	})},
	{"meter reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.MeterStatsReply{Meters: few(g, 3, func() openflow.MeterCounters {
			return openflow.MeterCounters{Meter: g.meter(), Flows: num[uint32](g), Packets: num[uint64](g), Bytes: num[uint64](g), Duration: g.duration(), Bands: few(g, 3, g.counter)}
		})}
	})},
	{"meter-config reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.MeterConfigReply{Meters: few(g, 3, func() openflow.MeterConfig {
			f := g.meterFlags()
			return openflow.MeterConfig{Flags: f, Meter: g.meter(), Bands: g.bands(f)}
		})}
	})},
	{"meter-features reply", reply(func(g Gen) openflow.ReplyBody {
		return &openflow.MeterFeatures{MaxMeters: num[uint32](g), BandTypes: uint32(g.bits(1<<1, 1<<2)), Capabilities: uint32(upTo(g, 15)), MaxBands: num[uint8](g), MaxColor: num[uint8](g)}
	})},
	{"table-features reply", reply(func(g Gen) openflow.ReplyBody { return g.tableFeatures() })},
	{"port-desc reply", reply(func(g Gen) openflow.ReplyBody {
		ports := few(g, 3, g.portDesc)
		slices.SortFunc(ports, func(a, b openflow.Port) int { return cmp.Compare(a.No, b.No) }) // ovs-ofctl sorts them
		return &openflow.PortDescReply{Ports: ports}
	})},
	{"experimenter reply", reply(func(g Gen) openflow.ReplyBody { return g.experimenterBody() })},
	{"unknown reply", reply(func(g Gen) openflow.ReplyBody { return &openflow.UnknownMultipart{Type: 99, Data: g.bytes(9)} })},
}

func request(draw func(g Gen) openflow.RequestBody) func(Gen) openflow.Message {
	return func(g Gen) openflow.Message {
		return &openflow.MultipartRequest{More: !g.Tame && g.flip(), Body: draw(g)}
	}
}

func reply(draw func(g Gen) openflow.ReplyBody) func(Gen) openflow.Message {
	return func(g Gen) openflow.Message {
		return &openflow.MultipartReply{More: !g.Tame && g.flip(), Body: draw(g)}
	}
}

func (g Gen) bits(all ...openflow.Capabilities) (v openflow.Capabilities) {
	for _, bit := range all {
		if g.flip() {
			v |= bit
		}
	}
	return v
}

func (g Gen) config() openflow.Config {
	return openflow.Config{Flags: openflow.ConfigFlags(upTo(g, 2)), MissSendLen: num[uint16](g)}
}

func (g Gen) flowMod() *openflow.FlowMod {
	m := &openflow.FlowMod{Cookie: num[uint64](g), Table: openflow.TableID(upTo(g, 253)), Command: openflow.FlowCommand(upTo(g, 4)),
		IdleTimeout: num[uint16](g), HardTimeout: num[uint16](g), Priority: num[uint16](g), Buffer: num[uint32](g),
		OutPort: g.port(openflow.PortAny), OutGroup: g.group(openflow.GroupAny), Flags: openflow.FlowFlags(upTo(g, 31)), Match: g.match()}
	g.plain = g.Tame // Open vSwitch compares the actions of a flow-mod with its match
	m.Instructions = g.instructions(m.Table)
	if m.Command >= openflow.FlowDelete && g.flip() {
		m.Table, m.Instructions = openflow.AllTables, nil
	}
	if m.Command != openflow.FlowAdd || !g.Tame {
		m.CookieMask = num[uint64](g)
	}
	return m
}

func (g Gen) flowStats() openflow.FlowStats {
	f := openflow.FlowStats{Table: openflow.TableID(upTo(g, 253)), Duration: g.duration(), Priority: num[uint16](g), IdleTimeout: num[uint16](g),
		HardTimeout: num[uint16](g), Flags: openflow.FlowFlags(upTo(g, 31)), Cookie: num[uint64](g), Packets: num[uint64](g),
		Bytes: num[uint64](g), Match: g.match()}
	f.Instructions = g.instructions(f.Table)
	return f
}

func (g Gen) filter() openflow.FlowFilter {
	return openflow.FlowFilter{Table: num[openflow.TableID](g), OutPort: g.port(openflow.PortAny), OutGroup: g.group(openflow.GroupAny), Cookie: num[uint64](g), CookieMask: num[uint64](g), Match: g.match()}
}

func (g Gen) portConfig() openflow.PortConfig {
	return openflow.PortConfig(g.bits(openflow.Capabilities(openflow.PortDown), openflow.Capabilities(openflow.PortNoRecv), openflow.Capabilities(openflow.PortNoFwd), openflow.Capabilities(openflow.PortNoPacketIn)))
}

func (g Gen) features() openflow.PortFeatures {
	return openflow.PortFeatures(upTo(g, 65535))
}

func (g Gen) portDesc() openflow.Port {
	return openflow.Port{No: g.port(openflow.PortLocal), HWAddr: g.mac(), Name: g.text(9), Config: g.portConfig(), State: openflow.PortState(upTo(g, 7)),
		Current: g.features(), Advertised: g.features(), Supported: g.features(), Peer: g.features(), CurrSpeed: num[uint32](g), MaxSpeed: num[uint32](g)}
}

func (g Gen) portStats() openflow.PortStats {
	n := func() uint64 { return num[uint64](g) }
	return openflow.PortStats{Port: g.port(), RxPackets: n(), TxPackets: n(), RxBytes: n(), TxBytes: n(), RxDropped: n(), TxDropped: n(), RxErrors: n(), TxErrors: n(), RxFrameErr: n(), RxOverErr: n(), RxCRCErr: n(), Collisions: n(), Duration: g.duration()}
}

func (g Gen) role() openflow.Role {
	r := openflow.Role{Role: openflow.ControllerRole(upTo(g, 3))}
	if r.Role == openflow.RoleMaster || r.Role == openflow.RoleSlave {
		r.GenerationID = num[uint64](g)
	}
	return r
}

func (g Gen) async() (a openflow.Async) {
	for i := range 2 {
		a.PacketIn[i], a.PortStatus[i], a.FlowRemoved[i] = uint32(upTo(g, 7)), uint32(upTo(g, 7)), uint32(upTo(g, 15))
	}
	return a
}

func (g Gen) meterFlags() openflow.MeterFlags {
	return openflow.MeterFlags(1+upTo(g, 1)) | openflow.MeterFlags(upTo(g, 3))<<2
}

func (g Gen) counter() openflow.Counter {
	return openflow.Counter{Packets: num[uint64](g), Bytes: num[uint64](g)}
}

func (g Gen) experimenterBody() *openflow.ExperimenterMultipart {
	return &openflow.ExperimenterMultipart{Experimenter: num[uint32](g), ExpType: num[uint32](g), Data: g.bytes(9)}
}

func (g Gen) tableFeatures() *openflow.TableFeaturesList {
	draw := func() openflow.TableFeatures {
		f := openflow.TableFeatures{Table: openflow.TableID(upTo(g, 254)), Name: g.text(9), MetadataMatch: num[uint64](g), MetadataWrite: num[uint64](g),
			MaxEntries: num[uint32](g)}
		if !g.Tame {
			f.Config = num[uint32](g)
		}
		for _, kind := range []openflow.TablePropertyType{openflow.TableInstructions, openflow.TableInstructionsMiss, openflow.TableNextTables, openflow.TableNextTablesMiss, openflow.TableWriteActions, openflow.TableWriteActionsMiss,
			openflow.TableApplyActions, openflow.TableApplyActionsMiss, openflow.TableMatch, openflow.TableWildcards, openflow.TableWriteSetField, openflow.TableWriteSetFieldMiss, openflow.TableApplySetField, openflow.TableApplySetFieldMiss} {
			if g.Tame || g.flip() {
				f.Properties = append(f.Properties, g.tableProperty(kind))
			}
		}
		if !g.Tame {
			f.Properties = append(f.Properties, openflow.TableProperty{Kind: openflow.TableExperimenterMiss, Body: g.bytes8(0)}, openflow.TableProperty{Kind: 33, Body: g.bytes(5)})
		}
		return f
	}
	if g.Tame {
		return &openflow.TableFeaturesList{Tables: []openflow.TableFeatures{draw()}} // of further tables ovs-ofctl prints only what differs
	}
	return &openflow.TableFeaturesList{Tables: few(g, 2, draw)}
}

func (g Gen) tableProperty(kind openflow.TablePropertyType) openflow.TableProperty {
	p := openflow.TableProperty{Kind: kind}
	switch kind {
	case openflow.TableInstructions, openflow.TableInstructionsMiss:
		for t := openflow.InstructionGotoTable; t <= openflow.InstructionMeter; t++ {
			if g.flip() {
				p.Instructions = append(p.Instructions, openflow.InstructionID{Type: t})
			}
		}
	case openflow.TableNextTables, openflow.TableNextTablesMiss:
		for _, t := range g.distinct(0, 254, 0, 5) {
			p.Tables = append(p.Tables, openflow.TableID(t))
		}
		slices.Sort(p.Tables)
	case openflow.TableWriteActions, openflow.TableWriteActionsMiss, openflow.TableApplyActions, openflow.TableApplyActionsMiss:
		for _, t := range []openflow.ActionType{openflow.ActionOutput, openflow.ActionSetMPLSTTL, openflow.ActionDecMPLSTTL, openflow.ActionPushVLAN, openflow.ActionPopVLAN, openflow.ActionPushMPLS, openflow.ActionPopMPLS,
			openflow.ActionSetQueue, openflow.ActionGroup, openflow.ActionSetNwTTL, openflow.ActionDecNwTTL, openflow.ActionSetField} {
			if g.flip() {
				p.Actions = append(p.Actions, openflow.ActionID{Type: t})
			}
		}
	default:
		for _, id := range writable {
			if g.flip() {
				p.Fields = append(p.Fields, id.TypeOf(kind == openflow.TableMatch && id.Maskable()))
			}
		}
		if !g.Tame {
			p.Fields = append(p.Fields, openflow.FieldType{ID: openflow.ClassExperimenter<<7 | 3, Length: 6, Experimenter: openflow.ONF})
		}
	}
	return p
}
