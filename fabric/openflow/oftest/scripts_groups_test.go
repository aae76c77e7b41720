package oftest

import (
	"time"

	of "headgate.dev/headgate/fabric/openflow"
)

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
