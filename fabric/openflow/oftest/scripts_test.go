package oftest

import (
	"net/netip"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
)

// scripts are what is recorded of a real switch and replayed against Switch. The last two use both controllers.
func scripts() []*script {
	return []*script{channelScript(), flowScript(), instructionScript(), matchScript(), groupScript(), loopScript(), meterScript(), actionScript(), packetScript(), timeoutScript(), roleScript()}
}

func flowMod(table of.TableID, priority uint16, match of.Match, i ...of.Instruction) *of.FlowMod {
	return &of.FlowMod{Table: table, Priority: priority, Buffer: of.NoBuffer, OutPort: of.PortAny, OutGroup: of.GroupAny, Match: match, Instructions: i}
}

func apply(a ...of.Action) of.Instruction { return of.ApplyActions{Actions: a} }
func write(a ...of.Action) of.Instruction { return of.WriteActions{Actions: a} }

func output(p of.PortNo) of.Action { return of.Output{Port: p, MaxLen: of.NoBufferLen} }

func with(m *of.FlowMod, f func(*of.FlowMod)) *of.FlowMod {
	f(m)
	return m
}

func command(c of.FlowCommand, m *of.FlowMod) *of.FlowMod {
	m.Command = c
	return m
}

func prefix(s string) netip.Prefix {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return netip.MustParsePrefix(s)
}

var (
	ipv4 = of.EthType(0x0800)
	ipv6 = of.EthType(0x86dd)
)

// header is the header of a message, whose transaction id the script sets.
func header(version, t byte, length int) []byte {
	b := make([]byte, max(length, 8))
	b[0], b[1], b[2], b[3] = version, t, byte(length>>8), byte(length)
	return b
}

func channelScript() *script {
	s := &script{name: "channel"}
	s.send("features", &of.FeaturesRequest{})
	s.send("the configuration at the begin", &of.GetConfigRequest{})
	s.send("miss_send_len", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	s.send("the configuration after it", &of.GetConfigRequest{})
	s.send("fragments are reassembled", &of.SetConfig{Config: of.Config{Flags: of.FragReasm}})
	s.multipart("description", &of.DescRequest{})
	s.multipart("ports", &of.PortDescRequest{})
	s.send("an echo", &of.EchoRequest{Data: []byte("data")})
	s.send("an echo without data", &of.EchoRequest{})
	s.send("asynchronous messages at the begin", &of.GetAsyncRequest{})
	s.send("no packet-in", &of.SetAsync{Async: of.Async{PortStatus: [2]uint32{7, 7}, FlowRemoved: [2]uint32{15, 0}}})
	s.send("asynchronous messages after it", &of.GetAsyncRequest{})
	s.send("table-mod", &of.TableMod{Table: 1, Config: 3})
	s.send("table-mod of all tables", &of.TableMod{Table: of.AllTables})
	s.send("queues of a port", &of.QueueGetConfigRequest{Port: 1})
	s.send("queues of all ports", &of.QueueGetConfigRequest{Port: of.PortAny})
	s.send("queues of a port that does not exist", &of.QueueGetConfigRequest{Port: 77})
	s.multipart("counters of queues", &of.QueueStatsRequest{Port: of.PortAny, Queue: of.AllQueues})
	s.multipart("counters of the queues of a port that does not exist", &of.QueueStatsRequest{Port: 77, Queue: of.AllQueues})
	s.multipart("counters of a queue that does not exist", &of.QueueStatsRequest{Port: 1, Queue: 5})
	s.multipart("counters of a port", &of.PortStatsRequest{Port: 2})
	s.multipart("counters of a port that does not exist", &of.PortStatsRequest{Port: 77})
	s.send("an experimenter that is unknown", &of.Experimenter{Experimenter: 0x123456, ExpType: 1, Data: []byte("abcd")})
	s.multipart("a multipart of an experimenter that is unknown", &of.ExperimenterMultipart{Experimenter: 0x123456, ExpType: 1})
	s.multipart("a multipart of an unknown type", &of.UnknownMultipart{Type: 77})
	s.raw(1, "a message of an unknown type", header(4, 99, 8))
	s.raw(1, "a message of a switch", header(4, byte(of.TypeBarrierReply), 8))
	s.raw(1, "a features-reply from a controller", header(4, byte(of.TypeFeaturesReply), 32))
	s.raw(1, "another version", header(1, byte(of.TypeFeaturesRequest), 8))
	s.raw(1, "a flow-mod that is too short", header(4, byte(of.TypeFlowMod), 20))
	s.raw(1, "a features-request that is too long", header(4, byte(of.TypeFeaturesRequest), 16))
	s.raw(1, "a long message of an unknown type: the error has 64 bytes of it", header(4, 98, 200))
	b, _ := of.Append(nil, 0, flowMod(0, 1, of.Match{of.InPort(1)}))
	b[51] = 200
	s.raw(1, "a match that is longer than the message", b)
	s.send("port-mod of a port that does not exist", &of.PortMod{No: 77})
	s.send("port-mod with the wrong address", &of.PortMod{No: 1, HWAddr: mac(9), Mask: of.PortNoFwd, Config: of.PortNoFwd})
	return s
}

func flowScript() *script {
	s := &script{name: "flows"}
	s.send("whole packets to the controller", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	add := func(comment string, m *of.FlowMod) { s.send(comment, m) }
	all := func(comment string) { s.multipart(comment, &of.FlowStatsRequest{FlowFilter: of.AllFlows()}) }
	add("a flow", flowMod(0, 10, of.Match{of.InPort(1)}, apply(output(2))))
	add("with a cookie", with(flowMod(1, 20, of.Match{ipv4, of.IPv4Dst(prefix("10.0.0.0/8"))}, apply(output(3))), func(m *of.FlowMod) { m.Cookie = 0xabc0 }))
	add("more specific", with(flowMod(1, 30, of.Match{ipv4, of.IPv4Dst(prefix("10.1.0.0/16"))}, apply(output(2))), func(m *of.FlowMod) { m.Cookie = 0xabc1; m.IdleTimeout = 100; m.HardTimeout = 200 }))
	add("without instructions", flowMod(1, 40, of.Match{of.EthDst(mac(7))}))
	add("a removal that is reported", with(flowMod(2, 5, nil, apply(output(of.PortController))), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved; m.Cookie = 5 }))
	all("all of them")
	s.multipart("of one table", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: 1, OutPort: of.PortAny, OutGroup: of.GroupAny}})
	s.multipart("that output to a port", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: of.AllTables, OutPort: 2, OutGroup: of.GroupAny}})
	s.multipart("of a cookie under a mask", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: of.AllTables, OutPort: of.PortAny, OutGroup: of.GroupAny, Cookie: 0xabc0, CookieMask: 0xfff0}})
	s.multipart("as specific as a match", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: of.AllTables, OutPort: of.PortAny, OutGroup: of.GroupAny, Match: of.Match{ipv4, of.IPv4Dst(prefix("10.1.0.0/16"))}}})
	s.multipart("of a table that does not exist", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: 254, OutPort: of.PortAny, OutGroup: of.GroupAny}})
	s.multipart("their sum", &of.AggregateRequest{FlowFilter: of.AllFlows()})
	add("the same match and priority replace the flow", with(flowMod(1, 40, of.Match{of.EthDst(mac(7))}, apply(output(1))), func(m *of.FlowMod) { m.Cookie = 7 }))
	add("an overlap that is not checked", flowMod(1, 20, of.Match{of.InPort(1)}, apply(output(1))))
	add("an overlap that is checked", with(flowMod(1, 20, of.Match{of.InPort(2)}, apply(output(1))), func(m *of.FlowMod) { m.Flags = of.FlowCheckOverlap }))
	add("the same flow with a check of overlap", with(flowMod(1, 40, of.Match{of.EthDst(mac(7))}, apply(output(1))), func(m *of.FlowMod) { m.Flags = of.FlowCheckOverlap }))
	add("no overlap by another priority", with(flowMod(1, 21, of.Match{of.InPort(2)}, apply(output(1))), func(m *of.FlowMod) { m.Flags = of.FlowCheckOverlap }))
	add("modify changes all that are as specific", command(of.FlowModify, flowMod(1, 0, of.Match{ipv4}, apply(output(4)))))
	add("modify of a cookie that no flow has", command(of.FlowModify, with(flowMod(1, 0, of.Match{ipv4}, apply(output(1))), func(m *of.FlowMod) { m.Cookie = 0xdead; m.CookieMask = ^uint64(0) })))
	add("strict modify changes one, and neither its cookie nor its timeouts", command(of.FlowModifyStrict, with(flowMod(1, 30, of.Match{ipv4, of.IPv4Dst(prefix("10.1.0.0/16"))}, apply(output(1))), func(m *of.FlowMod) { m.Cookie = 99; m.IdleTimeout = 1 })))
	add("strict modify of another priority changes none", command(of.FlowModifyStrict, flowMod(1, 31, of.Match{ipv4, of.IPv4Dst(prefix("10.1.0.0/16"))}, apply(output(2)))))
	add("modify of a match that no flow has", command(of.FlowModify, flowMod(3, 1, of.Match{of.InPort(4)}, apply(output(2)))))
	all("after the changes")
	add("strict deletion of another priority", command(of.FlowDeleteStrict, flowMod(1, 41, of.Match{of.EthDst(mac(7))})))
	add("strict deletion", command(of.FlowDeleteStrict, flowMod(1, 40, of.Match{of.EthDst(mac(7))})))
	add("deletion by port", command(of.FlowDelete, with(flowMod(of.AllTables, 0, nil), func(m *of.FlowMod) { m.OutPort = 2 })))
	add("deletion by cookie", command(of.FlowDelete, with(flowMod(of.AllTables, 0, nil), func(m *of.FlowMod) { m.Cookie, m.CookieMask = 0xabc1, ^uint64(0) })))
	all("after these deletions")
	add("deletion of a flow whose removal is reported", command(of.FlowDelete, flowMod(2, 0, nil)))
	add("deletion with a mask that is wider than the match of a flow", command(of.FlowDelete, flowMod(1, 0, of.Match{ipv4, of.IPv4Dst(prefix("10.0.0.0/8"))})))
	all("what is left")
	s.multipart("tables", &of.TableStatsRequest{})
	add("add to all tables", flowMod(of.AllTables, 1, nil))
	add("add to the last table of an Open vSwitch, which is internal", flowMod(254, 1, nil))
	add("modify all tables", command(of.FlowModify, flowMod(of.AllTables, 1, of.Match{of.InPort(3)}, apply(output(1)))))
	add("a flag that does not exist", with(flowMod(0, 1, nil), func(m *of.FlowMod) { m.Flags = 1 << 7 }))
	add("a command that does not exist", command(9, flowMod(0, 1, nil)))
	add("a buffer that does not exist", with(flowMod(4, 1, nil), func(m *of.FlowMod) { m.Buffer = 5 }))
	add("reset of counters, without counters", with(flowMod(5, 1, nil), func(m *of.FlowMod) {
		m.Flags = of.FlowResetCounts | of.FlowNoByteCounts | of.FlowNoPktCounts | of.FlowSendRemoved | of.FlowCheckOverlap
	}))
	add("add with a cookie mask", with(flowMod(6, 1, nil), func(m *of.FlowMod) { m.Cookie, m.CookieMask = 1, 1 }))
	all("at the end")
	return s
}

func instructionScript() *script {
	s := &script{name: "instructions"}
	m := of.Match{of.InPort(1)}
	add := func(comment string, i ...of.Instruction) { s.send(comment, flowMod(3, 1, m, i...)) }
	add("goto a later table", of.GotoTable{Table: 4})
	add("goto the same table", of.GotoTable{Table: 3})
	add("goto an earlier table", of.GotoTable{Table: 0})
	add("goto a table that does not exist", of.GotoTable{Table: 254})
	add("goto all tables", of.GotoTable{Table: 255})
	add("two instructions of one type", of.GotoTable{Table: 4}, of.GotoTable{Table: 5})
	add("any order of instructions", of.GotoTable{Table: 4}, apply(output(1)), of.WriteMetadata{Metadata: 5, Mask: 15}, of.ClearActions{}, write(output(2)))
	s.multipart("the order in which they are kept", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	add("metadata outside of its mask", of.WriteMetadata{Metadata: 0xff, Mask: 0xf})
	s.multipart("how it is kept", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	add("a meter that does not exist", of.Meter{Meter: 3})
	add("an unknown instruction", of.UnknownInstruction{Kind: 9, Body: make([]byte, 4)})
	add("an instruction of an experimenter", of.ExperimenterInstruction{Experimenter: 0x123456})
	add("apply without actions", apply())
	add("write without actions", write())
	add("output to a port that does not exist", apply(output(77)))
	add("output to port 0", apply(output(0)))
	add("output to any port", apply(output(of.PortAny)))
	add("output to the table", apply(output(of.PortTable)))
	add("output to the local port", apply(output(of.PortLocal)))
	add("output to normal", apply(output(of.PortNormal)))
	add("output to a port above the largest", apply(output(0xffffff05)))
	add("a group that does not exist", apply(of.Group{Group: 5}))
	add("an unknown action", apply(of.UnknownAction{Kind: 99, Body: make([]byte, 4)}))
	add("an action of an experimenter", apply(of.ExperimenterAction{Experimenter: 0x123456}))
	add("copy ttl out", apply(of.CopyTTLOut{}))
	add("push PBB", apply(of.PushPBB{EthType: 0x88e7}))
	add("push a VLAN tag of another type", apply(of.PushVLAN{EthType: 0x1234}))
	add("push a VLAN tag of a provider", apply(of.PushVLAN{EthType: 0x88a8}, output(2)))
	add("push an MPLS header of another type", apply(of.PushMPLS{EthType: 0x1234}))
	add("pop a tag that the match does not have", apply(of.PopVLAN{}))
	add("set the id of a tag that the match does not have", apply(of.SetField{Field: of.VLAN(5)}))
	add("push a tag and set it", apply(of.PushVLAN{EthType: 0x8100}, of.SetField{Field: of.VLAN(5)}, of.SetField{Field: of.VLANPCP(3)}, output(2)))
	s.multipart("how it is kept", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	add("set the id of a tag without the bit that it is present", apply(of.PushVLAN{EthType: 0x8100}, of.SetField{Field: of.NoVLAN()}))
	add("decrease the TTL of what may be no IP", apply(of.DecNwTTL{}))
	add("set the TTL of what may be no IP", apply(of.SetNwTTL{TTL: 3}))
	add("set an address of what may be no IP", apply(of.SetField{Field: of.IPv4Src(prefix("10.0.0.1"))}))
	add("set the port of arrival", apply(of.SetField{Field: of.InPort(3)}))
	add("set the metadata", apply(of.SetField{Field: of.Metadata(3)}))
	add("set the Ethernet type", apply(of.SetField{Field: ipv4}))
	add("set an Ethernet address", apply(of.SetField{Field: of.EthSrc(mac(4))}, output(2)))
	add("set a tunnel id", apply(of.SetField{Field: of.TunnelID(4)}, output(2)))
	add("set a DSCP of what may be no IP", apply(of.SetField{Field: of.IPDSCP(4)}))
	add("write two outputs", write(output(1), output(2)))
	add("set a queue", apply(of.SetQueue{Queue: 7}, output(2)))
	m = of.Match{ipv4}
	add("set an IPv4 address of IPv4", apply(of.SetField{Field: of.IPv4Src(prefix("10.0.0.1"))}))
	add("set a TCP port of what may be UDP", apply(of.SetField{Field: of.TCPDst(80)}))
	add("set the protocol", apply(of.SetField{Field: of.IPProto(6)}))
	add("set a DSCP", apply(of.SetField{Field: of.IPDSCP(4)}))
	add("set a DSCP that does not fit", apply(of.SetField{Field: of.IPDSCP(64)}))
	add("set an ECN", apply(of.SetField{Field: of.IPECN(1)}))
	m = of.Match{ipv4, of.IPProto(6)}
	add("set a TCP port", apply(of.SetField{Field: of.TCPDst(80)}, output(2)))
	add("set a UDP port of TCP", apply(of.SetField{Field: of.UDPDst(80)}, output(2)))
	m = of.Match{of.AnyVLAN()}
	add("pop a tag", apply(of.PopVLAN{}, output(1)))
	add("set a priority", apply(of.SetField{Field: of.VLANPCP(1)}, output(1)))
	m = of.Match{of.EthType(0x0806)}
	add("set the operation of ARP", apply(of.SetField{Field: of.ARPOp(2)}, of.SetField{Field: of.ARPSPA(prefix("10.0.0.3"))}, of.SetField{Field: of.ARPTHA(mac(4))}))
	m = of.Match{ipv6, of.IPProto(58), of.ICMPv6Type(135)}
	add("set the target of a neighbour solicitation", apply(of.SetField{Field: of.IPv6NDTarget(netip.MustParseAddr("fd00::5"))}, of.SetField{Field: of.IPv6NDSLL(mac(3))}))
	add("set the target's address of a neighbour solicitation", apply(of.SetField{Field: of.IPv6NDTLL(mac(3))}))
	add("set the type of ICMPv6", apply(of.SetField{Field: of.ICMPv6Type(136)}))
	add("set a flow label", apply(of.SetField{Field: of.IPv6FLabel(5)}))
	s.multipart("what is left", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	return s
}

func matchScript() *script {
	s := &script{name: "match"}
	add := func(comment string, m of.Match) { s.send(comment, flowMod(0, uint16(len(s.steps)), m)) }
	add("IPv4 address without Ethernet type", of.Match{of.IPv4Src(prefix("10.0.0.1"))})
	add("IPv4 address before its Ethernet type", of.Match{of.IPv4Src(prefix("10.0.0.1")), ipv4})
	add("IPv4 address with the Ethernet type of IPv6", of.Match{ipv6, of.IPv4Src(prefix("10.0.0.1"))})
	add("TCP port without protocol", of.Match{ipv4, of.TCPDst(80)})
	add("TCP port with UDP", of.Match{ipv4, of.IPProto(17), of.TCPDst(80)})
	add("TCP port", of.Match{ipv4, of.IPProto(6), of.TCPDst(80)})
	add("TCP port over IPv6", of.Match{ipv6, of.IPProto(6), of.TCPDst(80)})
	add("SCTP port", of.Match{ipv4, of.IPProto(132), of.SCTPDst(80)})
	add("ICMP type and code", of.Match{ipv4, of.IPProto(1), of.ICMPv4Type(8), of.ICMPv4Code(0)})
	add("priority of a tag without tag", of.Match{of.VLANPCP(3)})
	add("priority of a tag with no tag", of.Match{of.NoVLAN(), of.VLANPCP(3)})
	add("priority of any tag", of.Match{of.AnyVLAN(), of.VLANPCP(3)})
	add("a tag", of.Match{of.VLAN(7)})
	add("no tag", of.Match{of.NoVLAN()})
	add("a tag without the bit that it is present", of.Match{of.VLANMasked(7, 0x1fff)})
	add("a tag under a mask", of.Match{of.VLANMasked(0x1001, 0x1001)})
	add("the id of a tag under a mask without the bit", of.Match{of.VLANMasked(1, 1)})
	add("a field twice", of.Match{of.InPort(1), of.InPort(1)})
	add("a field twice with two values", of.Match{ipv4, ipv6})
	add("a value outside of its mask", of.Match{of.EthDstMasked(of.MAC{1, 1, 1, 1, 1, 1}, of.MAC{0xff})})
	add("a mask of ones", of.Match{of.EthDstMasked(mac(1), of.MAC{255, 255, 255, 255, 255, 255})})
	add("a mask of zeros", of.Match{of.EthDstMasked(of.MAC{}, of.MAC{})})
	add("any mask of an IPv4 address", of.Match{ipv4, field(of.FieldIPv4Dst, []byte{10, 0, 0, 1}, []byte{255, 0, 0, 255})})
	add("a mask of a field that has none", of.Match{field(of.FieldInPort, []byte{0, 0, 0, 1}, []byte{0, 0, 0, 255})})
	add("a mask of a TCP port, which is an extension", of.Match{ipv4, of.IPProto(6), field(of.FieldTCPDst, []byte{0, 0}, []byte{0xff, 0xf0})})
	add("a DSCP that does not fit", of.Match{ipv4, of.IPDSCP(64)})
	add("a priority that does not fit", of.Match{of.AnyVLAN(), of.VLANPCP(8)})
	add("a flow label that does not fit", of.Match{ipv6, of.IPv6FLabel(1 << 20)})
	add("a class that does not exist", of.Match{field(0x7777<<7|1, []byte{1}, nil)})
	add("a field that does not exist", of.Match{field(of.ClassBasic<<7|99, []byte{1}, nil)})
	add("the physical port", of.Match{of.InPort(1), of.InPhyPort(1)})
	add("metadata under a mask", of.Match{of.MetadataMasked(5, 15)})
	add("a port that does not exist", of.Match{of.InPort(99)})
	add("a reserved port", of.Match{of.InPort(of.PortController)})
	add("ARP", of.Match{of.EthType(0x0806), of.ARPOp(1), of.ARPSPA(prefix("10.0.0.1")), of.ARPTPA(prefix("10.0.0.0/24")), of.ARPSHA(mac(1)), of.ARPTHA(mac(2))})
	add("an operation of ARP above 255", of.Match{of.EthType(0x0806), of.ARPOp(300)})
	add("IPv6", of.Match{ipv6, of.IPv6Src(prefix("fd00::1")), of.IPv6Dst(prefix("fd00::/64")), of.IPv6FLabel(5), of.IPDSCP(10), of.IPECN(1)})
	add("neighbour discovery", of.Match{ipv6, of.IPProto(58), of.ICMPv6Type(135), of.ICMPv6Code(0), of.IPv6NDTarget(netip.MustParseAddr("fd00::2")), of.IPv6NDSLL(mac(1))})
	add("the target's address of a solicitation", of.Match{ipv6, of.IPProto(58), of.ICMPv6Type(135), of.IPv6NDTLL(mac(1))})
	add("MPLS", of.Match{of.EthType(0x8847), of.MPLSLabel(5), of.MPLSTC(1), of.MPLSBoS(1)})
	add("a service instance", of.Match{of.EthType(0x88e7), of.PBBISID(1)})
	add("extension headers", of.Match{ipv6, of.IPv6ExtHdr(1)})
	add("a tunnel id", of.Match{of.TunnelID(5)})
	add("Ethernet type of a length", of.Match{of.EthType(0x05ff)})
	s.multipart("how they are kept", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.multipart("a filter without a prerequisite", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: of.AllTables, OutPort: of.PortAny, OutGroup: of.GroupAny, Match: of.Match{of.TCPDst(1)}}})
	return s
}

func field(id of.FieldID, value, mask []byte) of.Field {
	f, err := of.NewField(id, value, mask)
	if err != nil {
		panic(err)
	}
	return f
}

// plain watches nothing.
func plain(weight uint16, a ...of.Action) of.Bucket {
	return of.Bucket{Weight: weight, WatchPort: of.PortAny, WatchGroup: of.GroupAny, Actions: a}
}

func watch(p of.PortNo, a ...of.Action) of.Bucket {
	return of.Bucket{WatchPort: p, WatchGroup: of.GroupAny, Actions: a}
}

func groupMod(c of.GroupCommand, k of.GroupType, id of.GroupID, b ...of.Bucket) *of.GroupMod {
	return &of.GroupMod{Command: c, Kind: k, Group: id, Buckets: b}
}

func groupScript() *script {
	s := &script{name: "groups"}
	s.send("whole packets to the controller", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	add := func(comment string, k of.GroupType, id of.GroupID, b ...of.Bucket) {
		s.send(comment, groupMod(of.GroupAdd, k, id, b...))
	}
	s.multipart("features", &of.GroupFeaturesRequest{})
	add("all", of.GroupTypeAll, 1, plain(0, output(1)), plain(0, of.SetField{Field: of.EthSrc(mac(9))}, output(2)))
	add("the same again", of.GroupTypeAll, 1, plain(0, output(1)))
	add("select", of.GroupTypeSelect, 2, plain(1, output(1)), plain(3, output(2)))
	add("select without weight", of.GroupTypeSelect, 3, plain(0, output(1)))
	add("indirect", of.GroupTypeIndirect, 4, plain(0, output(3)))
	add("indirect with two buckets", of.GroupTypeIndirect, 5, plain(0, output(3)), plain(0, output(3)))
	add("indirect without buckets", of.GroupTypeIndirect, 5)
	add("fast failover", of.GroupTypeFF, 6, watch(1, output(1)), watch(2, output(2)))
	add("fast failover that watches nothing", of.GroupTypeFF, 7, plain(0, output(1)))
	add("fast failover that watches a port that does not exist", of.GroupTypeFF, 8, watch(77, output(1)))
	add("fast failover that watches a group", of.GroupTypeFF, 9, of.Bucket{WatchPort: of.PortAny, WatchGroup: 6, Actions: of.Actions{output(3)}})
	add("fast failover that watches a group that does not exist", of.GroupTypeFF, 10, of.Bucket{WatchPort: of.PortAny, WatchGroup: 66, Actions: of.Actions{output(3)}})
	add("all without buckets", of.GroupTypeAll, 11)
	add("all with weights", of.GroupTypeAll, 12, plain(5, output(1)))
	add("all that watches a port", of.GroupTypeAll, 13, watch(1, output(1)))
	add("chained", of.GroupTypeAll, 14, plain(0, of.Group{Group: 4}), plain(0, of.Group{Group: 2}))
	add("chained to a group that does not exist", of.GroupTypeAll, 15, plain(0, of.Group{Group: 99}))
	add("a number that is too large", of.GroupTypeAll, 0xffffff05)
	add("a type that does not exist", 9, 17)
	add("output to a port that does not exist", of.GroupTypeAll, 18, plain(0, output(77)))
	add("a bad action", of.GroupTypeAll, 19, plain(0, output(0)))
	add("an action that needs IP", of.GroupTypeAll, 20, plain(0, of.SetField{Field: of.IPv4Src(prefix("10.0.0.1"))}, output(1)))
	add("an action that needs a tag", of.GroupTypeAll, 21, plain(0, of.PopVLAN{}, output(1)))
	s.send("a command that does not exist", groupMod(77, of.GroupTypeAll, 1))
	s.send("modify a group that does not exist", groupMod(of.GroupModify, of.GroupTypeAll, 77))
	s.send("modify to another type", groupMod(of.GroupModify, of.GroupTypeSelect, 1, plain(1, output(1))))
	s.send("delete a group that does not exist", groupMod(of.GroupDelete, of.GroupTypeAll, 77))
	s.multipart("descriptions", &of.GroupDescRequest{})
	s.multipart("counters", &of.GroupStatsRequest{Group: of.GroupAll})
	s.multipart("counters of a group that does not exist", &of.GroupStatsRequest{Group: 77})
	s.send("a flow that uses a group", with(flowMod(0, 1, of.Match{of.InPort(1)}, apply(of.Group{Group: 4})), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved; m.Cookie = 4 }))
	s.send("a flow that writes a group", with(flowMod(0, 1, of.Match{of.InPort(2)}, write(of.Group{Group: 4})), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved; m.Cookie = 5 }))
	s.multipart("flows that use a group", &of.FlowStatsRequest{FlowFilter: of.FlowFilter{Table: of.AllTables, OutPort: of.PortAny, OutGroup: 4}})
	s.multipart("counters with the flows that use it", &of.GroupStatsRequest{Group: 4})
	s.send("delete a group that flows use", groupMod(of.GroupDelete, of.GroupTypeAll, 4))
	s.multipart("flows after it", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("delete all groups", groupMod(of.GroupDelete, of.GroupTypeAll, of.GroupAll))
	s.multipart("descriptions after it", &of.GroupDescRequest{})

	out := func(comment string, a ...of.Action) {
		s.send(comment, &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortController, Actions: a, Data: udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 20)})
	}
	ctl := output(of.PortController)
	add("all, with changes that the other bucket does not see", of.GroupTypeAll, 1, plain(0, of.SetField{Field: of.EthSrc(mac(9))}, ctl), plain(0, ctl))
	out("through all", of.Group{Group: 1}, ctl)
	add("fast failover", of.GroupTypeFF, 2, watch(1, of.SetField{Field: of.EthSrc(mac(1))}, ctl), watch(2, of.SetField{Field: of.EthSrc(mac(2))}, ctl))
	out("through the first", of.Group{Group: 2})
	s.send("port 1 is down", &of.PortMod{No: 1, HWAddr: dummyMAC(1), Config: of.PortDown, Mask: of.PortDown})
	out("through the second", of.Group{Group: 2})
	s.send("port 2 is down", &of.PortMod{No: 2, HWAddr: dummyMAC(2), Config: of.PortDown, Mask: of.PortDown})
	out("through none", of.Group{Group: 2})
	add("fast failover over a group that is not live", of.GroupTypeFF, 3, of.Bucket{WatchPort: of.PortAny, WatchGroup: 2, Actions: of.Actions{of.SetField{Field: of.EthSrc(mac(3))}, ctl}}, watch(3, of.SetField{Field: of.EthSrc(mac(4))}, ctl))
	out("through the other", of.Group{Group: 3})
	s.send("port 1 is up", &of.PortMod{No: 1, HWAddr: dummyMAC(1), Mask: of.PortDown})
	s.send("port 2 is up", &of.PortMod{No: 2, HWAddr: dummyMAC(2), Mask: of.PortDown})
	out("through the group that is live again", of.Group{Group: 3})
	s.multipart("counters of groups and buckets", &of.GroupStatsRequest{Group: of.GroupAll})
	s.send("modify a group: its counters", groupMod(of.GroupModify, of.GroupTypeFF, 2, watch(1, ctl)))
	s.multipart("after it", &of.GroupStatsRequest{Group: 2})
	return s
}

func loopScript() *script {
	s := &script{name: "loops"}
	s.send("a group", groupMod(of.GroupAdd, of.GroupTypeIndirect, 1, plain(0, output(1))))
	s.send("chained to it", groupMod(of.GroupAdd, of.GroupTypeIndirect, 2, plain(0, of.Group{Group: 1})))
	s.send("chained to itself", groupMod(of.GroupAdd, of.GroupTypeIndirect, 3, plain(0, of.Group{Group: 3})))
	s.send("a loop of two groups", groupMod(of.GroupModify, of.GroupTypeIndirect, 1, plain(0, of.Group{Group: 2})))
	return s
}

// dummyMAC is the address of a port of the recorded switch.
func dummyMAC(n byte) of.MAC { return of.MAC{0xaa, 0x55, 0xaa, 0x55, 0, n + firstDummy} }

const firstDummy = 0x0e

func drop(rate, burst uint32) of.Band {
	return of.DropBand{BandLimit: of.BandLimit{Rate: rate, Burst: burst}}
}

func meterMod(c of.MeterCommand, f of.MeterFlags, id of.MeterID, b ...of.Band) *of.MeterMod {
	return &of.MeterMod{Command: c, Flags: f, Meter: id, Bands: b}
}

func meterScript() *script {
	s := &script{name: "meters"}
	add := func(comment string, f of.MeterFlags, id of.MeterID, b ...of.Band) {
		s.send(comment, meterMod(of.MeterAdd, f, id, b...))
	}
	s.multipart("features", &of.MeterFeaturesRequest{})
	add("kbit/s with a burst", of.MeterKbps|of.MeterBurst|of.MeterStats, 1, drop(1000, 500))
	add("kbit/s without a burst", of.MeterKbps, 2, drop(2000, 0))
	add("a burst without its flag", of.MeterKbps, 3, drop(2000, 7))
	add("packets/s", of.MeterPktps|of.MeterBurst|of.MeterStats, 4, drop(1, 3))
	add("both units", of.MeterPktps|of.MeterKbps, 5, drop(1, 3))
	add("neither unit", 0, 6, drop(1, 3))
	add("an unknown flag", of.MeterKbps|1<<7, 7, drop(1, 3))
	add("the same again", of.MeterKbps, 1, drop(1000, 0))
	add("a rate of 0", of.MeterKbps, 8, drop(0, 0))
	add("without bands", of.MeterKbps, 9)
	add("number 0", of.MeterKbps, 0, drop(1, 0))
	add("a number that is too large", of.MeterKbps, 0xffff0001, drop(1, 0))
	add("the controller's meter", of.MeterKbps, of.MeterController, drop(1000, 0))
	add("another type of band", of.MeterKbps, 10, of.DSCPRemarkBand{BandLimit: of.BandLimit{Rate: 5}, Levels: 1})
	add("an unknown type of band", of.MeterKbps, 11, of.UnknownBand{Kind: 7, BandLimit: of.BandLimit{Rate: 5}, Body: make([]byte, 4)})
	add("two bands", of.MeterKbps|of.MeterBurst, 12, drop(1000, 10), drop(2000, 20))
	nine := make([]of.Band, 9)
	for i := range nine {
		nine[i] = drop(uint32(i+1), 1)
	}
	add("9 bands", of.MeterKbps|of.MeterBurst, 13, nine...)
	s.send("modify a meter that does not exist", meterMod(of.MeterModify, of.MeterKbps, 77, drop(1, 0)))
	s.send("delete a meter that does not exist", meterMod(of.MeterDelete, of.MeterKbps, 77))
	s.send("a command that does not exist", meterMod(9, of.MeterKbps, 1, drop(1, 0)))
	s.multipart("their bands", &of.MeterConfigRequest{Meter: of.MeterAll})
	s.multipart("the bands of one", &of.MeterConfigRequest{Meter: 2})
	s.multipart("the bands of one that does not exist", &of.MeterConfigRequest{Meter: 77})
	s.multipart("counters", &of.MeterStatsRequest{Meter: of.MeterAll})
	s.multipart("counters of one that does not exist", &of.MeterStatsRequest{Meter: 77})
	s.send("a flow that uses a meter", with(flowMod(0, 1, of.Match{of.InPort(1)}, of.Meter{Meter: 4}, apply(output(2))), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved }))
	for range 6 {
		s.arrive("a frame: 3 of them pass", 1, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 100))
	}
	s.pass("until the counters of flows are updated", 1500*time.Millisecond)
	s.multipart("counters after the frames", &of.MeterStatsRequest{Meter: 4})
	s.multipart("counters of the flow", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("a change resets the counters", meterMod(of.MeterModify, of.MeterPktps|of.MeterBurst|of.MeterStats, 4, drop(1, 2)))
	s.multipart("counters after the change", &of.MeterStatsRequest{Meter: 4})
	s.multipart("counters of the flow after it", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("a deletion deletes the flow", meterMod(of.MeterDelete, of.MeterKbps, 4))
	s.multipart("flows after it", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("delete all", meterMod(of.MeterDelete, of.MeterKbps, of.MeterAll))
	s.multipart("bands after it", &of.MeterConfigRequest{Meter: of.MeterAll})
	return s
}

// actionScript passes packets through tables back to the controller, which sees what was changed in them.
func actionScript() *script {
	s := &script{name: "actions"}
	s.send("whole packets to the controller", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	s.multipart("counters of ports at the begin", &of.PortStatsRequest{Port: of.PortAny})
	ctl := output(of.PortController)
	frame := tcpFrame(64, 1234, 80)
	out := func(comment string, data []byte, a ...of.Action) {
		s.send(comment, &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortController, Actions: append(a, ctl), Data: data})
	}
	set := func(f of.Field) of.Action { return of.SetField{Field: f} }
	out("nothing changed", frame)
	out("Ethernet addresses", frame, set(of.EthSrc(mac(8))), set(of.EthDst(mac(9))))
	out("addresses of IPv4", frame, set(of.IPv4Src(prefix("192.168.1.1"))), set(of.IPv4Dst(prefix("192.168.1.2"))))
	out("ports of TCP", frame, set(of.TCPSrc(1)), set(of.TCPDst(2)))
	out("DSCP and ECN", frame, set(of.IPDSCP(46)), set(of.IPECN(2)))
	out("decrease the TTL", frame, of.DecNwTTL{})
	out("decrease a TTL of 1", tcpFrame(1, 1, 2), of.DecNwTTL{})
	out("set the TTL", frame, of.SetNwTTL{TTL: 7})
	out("push a tag", frame, of.PushVLAN{EthType: 0x8100}, set(of.VLAN(100)), set(of.VLANPCP(5)))
	out("push a tag on a tag", vlanFrame(5, 3), of.PushVLAN{EthType: 0x88a8}, set(of.VLAN(100)))
	out("pop a tag", vlanFrame(5, 3), of.PopVLAN{})
	out("set a tag", vlanFrame(5, 3), set(of.VLAN(7)))
	out("set its priority", vlanFrame(5, 3), set(of.VLANPCP(1)))
	udp := udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 21)
	out("addresses and ports of UDP", udp, set(of.IPv4Src(prefix("1.2.3.4"))), set(of.UDPDst(9999)))
	none := append([]byte(nil), udp...)
	none[40], none[41] = 0, 0
	out("UDP without a checksum", none, set(of.UDPDst(9999)))
	six := udpFrame("fd00::1", "fd00::2", 1, 2, 21)
	out("addresses and ports over IPv6", six, set(of.IPv6Src(prefix("fd00::9"))), set(of.UDPSrc(77)))
	out("hop limit, flow label and DSCP", six, of.DecNwTTL{}, set(of.IPv6FLabel(0x12345)), set(of.IPDSCP(10)))
	out("operation and addresses of ARP", arpFrame(1, "10.0.0.1", "10.0.0.2"), set(of.ARPOp(2)), set(of.ARPSPA(prefix("10.0.0.3"))), set(of.ARPSHA(mac(5))), set(of.ARPTPA(prefix("10.0.0.4"))), set(of.ARPTHA(mac(6))))
	out("type and code of ICMP", icmpFrame(8), set(of.ICMPv4Type(0)), set(of.ICMPv4Code(3)))
	out("target of a neighbour solicitation", neighbourFrame("fd00::2"), set(of.IPv6NDTarget(netip.MustParseAddr("fd00::7"))), set(of.IPv6NDSLL(mac(7))))
	out("IPv4 address of IPv6, which has none", six, set(of.IPv4Src(prefix("1.2.3.4"))))
	out("pop a tag of a frame without", frame, of.PopVLAN{})
	out("set a tag of a frame without", frame, set(of.VLAN(3)))
	out("a frame that is too short", []byte{1, 2, 3})
	out("no frame", nil)
	out("a frame without payload", frame[:14])
	out("an IPv4 header that is cut off", frame[:20])
	s.send("two packets, the second changed", &of.PacketOut{Buffer: of.NoBuffer, InPort: 1, Actions: of.Actions{ctl, set(of.EthSrc(mac(8))), ctl}, Data: frame})
	s.send("20 bytes to the controller", &of.PacketOut{Buffer: of.NoBuffer, InPort: 2, Actions: of.Actions{of.Output{Port: of.PortController, MaxLen: 20}}, Data: frame})
	s.send("a buffer that does not exist", &of.PacketOut{Buffer: 4, InPort: 2, Actions: of.Actions{ctl}})
	s.send("from a port that does not exist", &of.PacketOut{Buffer: of.NoBuffer, InPort: 77, Actions: of.Actions{ctl}, Data: frame})
	s.send("from any port", &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortAny, Actions: of.Actions{ctl}, Data: frame})
	s.send("from port 0", &of.PacketOut{Buffer: of.NoBuffer, InPort: 0, Actions: of.Actions{ctl}, Data: frame})
	s.send("to a bad port", &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortController, Actions: of.Actions{output(0)}, Data: frame})
	s.send("to a group that does not exist", &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortController, Actions: of.Actions{of.Group{Group: 5}}, Data: frame})
	s.send("to ports", &of.PacketOut{Buffer: of.NoBuffer, InPort: 1, Actions: of.Actions{output(1), output(of.PortInPort), output(2), output(77)}, Data: frame})
	s.send("to all", &of.PacketOut{Buffer: of.NoBuffer, InPort: 1, Actions: of.Actions{output(of.PortAll)}, Data: frame})
	s.send("to flood", &of.PacketOut{Buffer: of.NoBuffer, InPort: of.PortController, Actions: of.Actions{output(of.PortFlood)}, Data: frame})
	s.multipart("counters of ports", &of.PortStatsRequest{Port: of.PortAny})
	return s
}

func packetScript() *script {
	s := &script{name: "pipeline"}
	s.send("whole packets to the controller", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	s.multipart("counters of tables at the begin", &of.TableStatsRequest{})
	ctl := output(of.PortController)
	set := func(f of.Field) of.Action { return of.SetField{Field: f} }
	add := func(comment string, table of.TableID, priority uint16, m of.Match, i ...of.Instruction) {
		s.send(comment, with(flowMod(table, priority, m, i...), func(f *of.FlowMod) { f.Cookie = uint64(table)<<8 | uint64(priority) }))
	}
	table := func(comment string, data []byte) {
		s.send(comment, &of.PacketOut{Buffer: of.NoBuffer, InPort: 1, Actions: of.Actions{output(of.PortTable)}, Data: data})
	}
	to := func(last byte) of.Match {
		return of.Match{ipv4, of.IPProto(17), of.UDPDst(uint16(last))}
	}
	f := func(port uint16) []byte { return udpFrame("10.0.0.1", "10.0.0.2", 9, port, 10) }
	table("no flow", f(1))
	add("table miss to the controller", 0, 0, nil, apply(ctl))
	table("no other flow", f(1))
	add("the action set: output comes last", 0, 10, to(1), write(ctl, set(of.EthSrc(mac(9)))), of.GotoTable{Table: 1})
	add("overwritten by a later table", 1, 5, nil, write(set(of.EthSrc(mac(8))), of.DecNwTTL{}))
	table("the set", f(1))
	add("cleared", 0, 10, to(2), write(ctl, set(of.EthSrc(mac(9)))), of.GotoTable{Table: 2})
	add("and written again", 2, 5, nil, of.ClearActions{}, write(ctl))
	table("cleared and written", f(2))
	add("metadata", 0, 10, to(3), of.WriteMetadata{Metadata: 0x1ff, Mask: 0xff}, of.GotoTable{Table: 3})
	add("metadata matched", 3, 5, of.Match{of.MetadataMasked(0xf0, 0xf0)}, of.WriteMetadata{Metadata: 0x500, Mask: 0xf00}, apply(ctl))
	table("the metadata is in the packet-in", f(3))
	add("a change is seen by the next table", 0, 10, to(4), apply(set(of.UDPDst(55))), of.GotoTable{Table: 4})
	add("matched", 4, 5, to(55), apply(ctl))
	table("changed and matched", f(4))
	add("push a tag", 0, 10, to(5), apply(of.PushVLAN{EthType: 0x8100}, set(of.VLAN(42))), of.GotoTable{Table: 5})
	add("matched with the tag", 5, 5, of.Match{of.VLAN(42), ipv4}, apply(of.PopVLAN{}, ctl))
	table("pushed, matched and popped", f(5))
	add("a set with an output and no group", 0, 10, to(6), write(output(2), ctl))
	table("the later output replaces the earlier", f(6))
	add("to a table without flows", 0, 10, to(7), apply(ctl), of.GotoTable{Table: 9})
	table("it is dropped there", f(7))
	add("to a table without flows, with a set", 0, 10, to(8), write(ctl), of.GotoTable{Table: 9})
	table("the set is not executed", f(8))
	add("drop", 0, 10, to(9))
	table("dropped", f(9))
	add("highest priority first", 0, 20, to(1))
	table("dropped by the higher priority", f(1))
	s.send("a group", groupMod(of.GroupAdd, of.GroupTypeAll, 1, plain(0, ctl)))
	add("a set with a group and an output", 0, 10, to(10), write(of.Group{Group: 1}, output(3)))
	table("the group replaces the output", f(10))
	add("the TTL ends", 0, 10, to(11), apply(of.DecNwTTL{}, output(2)))
	low := f(11)
	low[22] = 1
	low[24], low[25] = 0, 0
	table("reported as an invalid TTL", low)
	add("the port of arrival", 0, 10, to(12), apply(output(1), output(of.PortInPort)))
	table("only in_port sends it back", f(12))
	s.arrive("a frame", 3, f(1))
	s.arrive("a frame to the controller", 3, f(3))
	s.arrive("a frame with an unknown type", 3, serialize(eth(mac(1), mac(2), 0x9999)))
	s.arrive("a frame of ARP", 3, arpFrame(1, "10.0.0.1", "10.0.0.2"))
	s.arrive("a frame with a tag", 3, vlanFrame(5, 3))
	s.arrive("neighbour discovery", 4, neighbourFrame("fd00::2"))
	s.pass("until the counters are updated", 2*time.Second)
	s.multipart("counters of flows", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.multipart("sum of the counters", &of.AggregateRequest{FlowFilter: of.AllFlows()})
	s.multipart("counters of tables", &of.TableStatsRequest{})
	add("replacing a flow keeps no counter", 0, 0, nil, apply(ctl))
	s.send("modifying a flow keeps its counters", command(of.FlowModify, flowMod(0, 0, to(4), apply(ctl))))
	s.send("unless they are reset", command(of.FlowModify, with(flowMod(0, 0, to(3), apply(ctl)), func(m *of.FlowMod) { m.Flags = of.FlowResetCounts })))
	s.multipart("counters after the changes", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("port 3 receives nothing", &of.PortMod{No: 3, HWAddr: dummyMAC(3), Config: of.PortNoRecv, Mask: of.PortNoRecv})
	s.arrive("a frame that is not received", 3, f(3))
	s.send("port 3 causes no packet-in", &of.PortMod{No: 3, HWAddr: dummyMAC(3), Config: of.PortNoPacketIn, Mask: of.PortNoPacketIn | of.PortNoRecv})
	s.arrive("a frame without packet-in", 3, f(3))
	s.send("port 3 as before", &of.PortMod{No: 3, HWAddr: dummyMAC(3), Mask: of.PortNoPacketIn | of.PortNoRecv})
	return s
}

func timeoutScript() *script {
	s := &script{name: "timeouts"}
	timed := func(comment string, port of.PortNo, idle, hard uint16) {
		s.send(comment, with(flowMod(0, 5, of.Match{of.InPort(port)}, apply(output(4))), func(m *of.FlowMod) {
			m.IdleTimeout, m.HardTimeout, m.Flags, m.Cookie = idle, hard, of.FlowSendRemoved, uint64(port)
		}))
	}
	timed("a hard timeout", 1, 0, 1)
	timed("an idle timeout", 2, 1, 0)
	timed("both", 3, 100, 200)
	s.pass("until they end", 3500*time.Millisecond)
	s.multipart("what is left", &of.FlowStatsRequest{FlowFilter: of.AllFlows()})
	s.send("deleted before its end", command(of.FlowDelete, flowMod(0, 0, nil)))
	s.send("replaced, which is no removal", with(flowMod(0, 5, nil), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved }))
	s.send("replaced", with(flowMod(0, 5, nil), func(m *of.FlowMod) { m.Flags = 0 }))
	s.send("deleted, and not reported", command(of.FlowDelete, flowMod(0, 0, nil)))
	return s
}

func roleScript() *script {
	s := &script{name: "roles"}
	role := func(to int, comment string, r of.ControllerRole, generation uint64) {
		s.sendTo(to, comment, &of.RoleRequest{Role: of.Role{Role: r, GenerationID: generation}})
	}
	ctl := output(of.PortController)
	out := func(to int, comment string) {
		s.sendTo(to, comment, &of.PacketOut{Buffer: of.NoBuffer, InPort: 1, Actions: of.Actions{ctl}, Data: udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10)})
	}
	s.sendTo(1, "whole packets to controller 1", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	s.sendTo(2, "whole packets to controller 2", &of.SetConfig{Config: of.Config{MissSendLen: of.NoBufferLen}})
	role(1, "the role at the begin", of.RoleNoChange, 0)
	out(1, "both of equal role receive packets")
	role(1, "master", of.RoleMaster, 10)
	role(2, "slave", of.RoleSlave, 10)
	out(1, "only the master receives packets")
	out(2, "a slave sends none")
	s.sendTo(2, "a slave adds no flow", flowMod(0, 1, nil))
	s.sendTo(2, "a slave adds no group", groupMod(of.GroupAdd, of.GroupTypeAll, 1))
	s.sendTo(2, "a slave adds no meter", meterMod(of.MeterAdd, of.MeterKbps, 1, drop(1, 1)))
	s.sendTo(2, "a slave changes no port", &of.PortMod{No: 1, HWAddr: dummyMAC(1)})
	s.sendTo(2, "a slave sets the configuration", &of.SetConfig{Config: of.Config{MissSendLen: 100}})
	s.sendTo(2, "a slave changes no table", &of.TableMod{Table: 1})
	s.sendTo(2, "a slave reads", &of.MultipartRequest{Body: &of.FlowStatsRequest{FlowFilter: of.AllFlows()}})
	s.sendTo(2, "a slave selects asynchronous messages", &of.GetAsyncRequest{})
	s.sendTo(1, "a slave is informed of ports", &of.PortMod{No: 4, HWAddr: dummyMAC(4), Config: of.PortNoFwd, Mask: of.PortNoFwd})
	s.sendTo(1, "and again", &of.PortMod{No: 4, HWAddr: dummyMAC(4), Mask: of.PortNoFwd})
	s.sendTo(1, "a flow whose removal is reported", with(flowMod(0, 1, nil), func(m *of.FlowMod) { m.Flags = of.FlowSendRemoved }))
	s.sendTo(1, "only to the master", command(of.FlowDelete, flowMod(0, 1, nil)))
	role(2, "master of an older generation", of.RoleMaster, 9)
	role(2, "slave of an older generation", of.RoleSlave, 9)
	role(2, "equal of an older generation", of.RoleEqual, 9)
	role(2, "master of the same generation: the other becomes a slave", of.RoleMaster, 10)
	role(1, "the role after it", of.RoleNoChange, 0)
	s.sendTo(1, "the former master adds no flow", flowMod(0, 1, nil))
	role(1, "master of a newer generation", of.RoleMaster, 11)
	role(2, "the role of the other", of.RoleNoChange, 0)
	role(2, "a role that does not exist", 9, 12)
	role(1, "the distance of generations is signed", of.RoleMaster, 1<<63+10)
	role(1, "equal again", of.RoleEqual, 0)
	role(2, "equal as well", of.RoleEqual, 0)
	return s
}
