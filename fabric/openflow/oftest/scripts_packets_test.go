package oftest

import (
	"net/netip"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
)

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
