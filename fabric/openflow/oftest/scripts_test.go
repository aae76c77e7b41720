package oftest

import (
	"net/netip"

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
