package oftest

import (
	"errors"
	"testing"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Packets put an idle timeout off, but not a hard one. The reports have the times and counters.
func TestTimeouts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{}, 3)
		p := connect(s)
		defer p.conn.Close()
		for port, m := range map[of.PortNo][2]uint16{1: {10, 0}, 2: {10, 35}} {
			do(t, s, with(flowMod(0, 1, of.Match{of.InPort(port)}, apply(output(3))), func(f *of.FlowMod) {
				f.IdleTimeout, f.HardTimeout, f.Flags, f.Cookie = m[0], m[1], of.FlowSendRemoved, uint64(port)
			}))
		}
		for range 5 { // at 8, 16, 24, 32 and 40 s
			time.Sleep(8 * time.Second)
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 18))
			s.Receive(2, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 18))
		}
		time.Sleep(20 * time.Second)
		want := map[uint64]of.FlowRemoved{
			1: {Reason: of.RemovedIdleTimeout, Duration: of.DurationOf(50 * time.Second), Packets: 5, Bytes: 300},
			2: {Reason: of.RemovedHardTimeout, Duration: of.DurationOf(35 * time.Second), Packets: 4, Bytes: 240},
		}
		got := p.ask(t, &of.BarrierRequest{})
		if len(got) != 3 {
			t.Fatalf("received %v", got)
		}
		for _, m := range got[:2] {
			r := m.(*of.FlowRemoved)
			if w := want[r.Cookie]; r.Reason != w.Reason || r.Duration != w.Duration || r.Packets != w.Packets || r.Bytes != w.Bytes {
				t.Errorf("flow %d: %+v, want %+v", r.Cookie, r, w)
			}
		}
		if len(s.Flows()) != 0 || len(s.events) != 1 { // the echo timer of the channel
			t.Errorf("%d flows and %d events are left", len(s.Flows()), len(s.events))
		}
	})
}

// A flow that is replaced or deleted does not end a later one.
func TestTimeoutOfReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{})
		hard := func(n uint16) *of.FlowMod { return with(flowMod(0, 1, nil), func(m *of.FlowMod) { m.HardTimeout = n }) }
		do(t, s, hard(5))
		time.Sleep(3 * time.Second)
		do(t, s, hard(5))
		time.Sleep(4 * time.Second)
		if len(s.Flows()) != 1 {
			t.Error("the timeout of the replaced flow ended the new one")
		}
		do(t, s, command(of.FlowDelete, flowMod(0, 0, nil)), flowMod(0, 1, nil))
		time.Sleep(time.Hour)
		if len(s.Flows()) != 1 {
			t.Error("the timeout of the deleted flow ended the new one")
		}
	})
}

// The limits of poor hardware are errors of the specification.
func TestLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		group := groupMod(of.GroupAdd, of.GroupTypeAll, 1)
		failover := groupMod(of.GroupAdd, of.GroupTypeFF, 2, watch(1, output(1)))
		meter := meterMod(of.MeterAdd, of.MeterKbps, 1, drop(1, 0))
		for name, c := range map[string]struct {
			limits Limits
			tables int
			before []of.Message
			send   of.Message
			want   string
		}{
			"flows":          {Limits{Flows: 2}, 0, []of.Message{flowMod(0, 1, nil), flowMod(0, 2, nil), flowMod(1, 1, nil)}, flowMod(0, 3, nil), "OFPFMFC_TABLE_FULL"},
			"a replacement":  {Limits{Flows: 2}, 0, []of.Message{flowMod(0, 1, nil), flowMod(0, 2, nil)}, flowMod(0, 2, nil), ""},
			"one table":      {Limits{}, 1, nil, flowMod(1, 1, nil), "OFPBRC_BAD_TABLE_ID"},
			"no goto":        {Limits{}, 1, nil, flowMod(0, 1, nil, of.GotoTable{Table: 1}), "OFPBIC_BAD_TABLE_ID"},
			"no groups":      {Limits{Groups: -1}, 0, nil, group, "OFPGMFC_BAD_TYPE"},
			"groups":         {Limits{Groups: 1}, 0, []of.Message{group}, failover, "OFPGMFC_OUT_OF_GROUPS"},
			"no failover":    {Limits{GroupTypes: 1<<of.GroupTypeAll | 1<<of.GroupTypeIndirect}, 0, []of.Message{group}, failover, "OFPGMFC_BAD_TYPE"},
			"no meters":      {Limits{Meters: -1}, 0, nil, meter, "OFPMMFC_OUT_OF_METERS"},
			"meters":         {Limits{Meters: 1}, 0, []of.Message{meter}, meterMod(of.MeterAdd, of.MeterKbps, 2, drop(1, 0)), "OFPMMFC_OUT_OF_METERS"},
			"bands":          {Limits{Bands: 1}, 0, nil, meterMod(of.MeterAdd, of.MeterKbps, 2, drop(1, 0), drop(2, 0)), "OFPMMFC_OUT_OF_BANDS"},
			"no group stats": {Limits{Groups: -1}, 0, nil, &of.MultipartRequest{Body: &of.GroupDescRequest{}}, "OFPBRC_BAD_MULTIPART"},
			"no meter stats": {Limits{Meters: -1}, 0, nil, &of.MultipartRequest{Body: &of.MeterConfigRequest{Meter: of.MeterAll}}, "OFPBRC_BAD_MULTIPART"},
		} {
			s := New(Options{Limits: c.limits, Tables: c.tables})
			do(t, s, c.before...)
			got := ""
			var e *of.Error
			if errors.As(s.Do(c.send), &e) {
				got = e.Name()
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	})
}

// Table features describe what the limits allow, and every message about them can be decoded.
func TestTableFeatures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, limits := range []Limits{{}, {Groups: -1, Meters: -1, Flows: 100}} {
			p := connect(New(Options{Tables: 3, Limits: limits}))
			got := p.ask(t, &of.MultipartRequest{Body: &of.TableFeaturesList{}})
			tables := got[0].(*of.MultipartReply).Body.(*of.TableFeaturesList).Tables
			if len(tables) != 3 || len(tables[0].Properties[1].Tables) != 2 || len(tables[2].Properties[1].Tables) != 0 {
				t.Fatalf("tables %+v", tables)
			}
			group, meter := false, false
			for _, a := range tables[0].Properties[3].Actions {
				group = group || a.Type == of.ActionGroup
			}
			for _, i := range tables[0].Properties[0].Instructions {
				meter = meter || i.Type == of.InstructionMeter
			}
			if group != (limits.Groups >= 0) || meter != (limits.Meters >= 0) {
				t.Errorf("limits %+v: groups %v, meters %v", limits, group, meter)
			}
			p.conn.Close()
		}
	})
}

// Of the frames of many connections a select group sends to each bucket in proportion to its weight, those of one
// connection to one, and none to a bucket that is not live.
func TestSelect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{}, 4)
		of1 := func(w uint16, p of.PortNo) of.Bucket {
			return of.Bucket{Weight: w, WatchPort: p, WatchGroup: of.GroupAny, Actions: of.Actions{output(p)}}
		}
		do(t, s, groupMod(of.GroupAdd, of.GroupTypeSelect, 1, of1(1, 2), of1(3, 3)), flowMod(0, 1, nil, apply(of.Group{Group: 1})))
		sent := func() (n [5]uint64) {
			for i := range n {
				st, _ := s.PortStats(of.PortNo(i))
				n[i] = st.TxPackets
			}
			return n
		}
		for port := range uint16(4000) {
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", port, 80, 10))
		}
		if n := sent(); n[2] < 900 || n[2] > 1100 || n[2]+n[3] != 4000 {
			t.Errorf("sent to the ports: %v, want about 1000 and 3000", n)
		}
		before := sent()
		for range 100 {
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", 7, 80, 10))
		}
		if n := sent(); n[2] != before[2] && n[3] != before[3] {
			t.Error("one connection was divided")
		}
		s.SetLink(3, false)
		before = sent()
		for port := range uint16(100) {
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", port, 80, 10))
		}
		if n := sent(); n[2] != before[2]+100 || n[3] != before[3] {
			t.Errorf("sent to the ports: %v, before %v", n, before)
		}
	})
}

// Frames reach the ports that an output means, and never go back but by IN_PORT.
func TestOutputs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			out  []of.Action
			want [6]int
		}{
			"flood":       {[]of.Action{output(of.PortFlood)}, [6]int{2: 1, 3: 1}},
			"all":         {[]of.Action{output(of.PortAll)}, [6]int{2: 1, 3: 1}},
			"in_port":     {[]of.Action{output(of.PortInPort)}, [6]int{1: 1}},
			"the arrival": {[]of.Action{output(1), output(2)}, [6]int{2: 1}},
			"down":        {[]of.Action{output(4)}, [6]int{}},
			"no_fwd":      {[]of.Action{output(5)}, [6]int{}},
			"twice":       {[]of.Action{output(2), output(2)}, [6]int{2: 2}},
		} {
			s := withPorts(t, Options{}, 5)
			var got [6]int
			for p := of.PortNo(1); p <= 5; p++ {
				if err := s.Listen(p, func([]byte) { got[p]++ }); err != nil {
					t.Fatal(err)
				}
			}
			s.SetLink(4, false)
			do(t, s, &of.PortMod{No: 5, HWAddr: s.mac(5), Config: of.PortNoFwd, Mask: of.PortNoFwd}, flowMod(0, 1, nil, apply(c.out...)))
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
			if got != c.want {
				t.Errorf("%s: frames at the ports %v, want %v", name, got, c.want)
			}
			s.Receive(4, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
			if got != c.want {
				t.Errorf("%s: a port without link received", name)
			}
		}
	})
}

// Ports that come, go and change are reported, and their descriptions have their speed.
func TestPortStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{})
		p := connect(s)
		defer p.conn.Close()
		if err := s.AddPort(PortOptions{No: 1, Speed: 1e9, Name: "eth1"}); err != nil {
			t.Fatal(err)
		}
		if s.AddPort(PortOptions{No: 1}) == nil || s.AddPort(PortOptions{No: 0}) == nil || s.AddPort(PortOptions{No: 2, Name: "a name of many bytes"}) == nil {
			t.Error("a port that is there, number 0, or a long name is accepted")
		}
		s.SetLink(1, false)
		s.SetLink(1, false)
		s.SetLink(1, true)
		s.SetSpeed(1, 100e6)
		s.RemovePort(1)
		var got []of.PortStatus
		for _, m := range p.ask(t, &of.EchoReply{}) {
			got = append(got, *m.(*of.PortStatus))
		}
		want := []of.PortReason{of.PortAdd, of.PortModify, of.PortModify, of.PortModify, of.PortDelete}
		if len(got) != len(want) {
			t.Fatalf("received %v", got)
		}
		for i, w := range want {
			if got[i].Reason != w || got[i].Port.Name != "eth1" {
				t.Errorf("status %d: %v", i, got[i])
			}
		}
		if got[0].Port.CurrSpeed != 1e6 || got[0].Port.Current != of.Feature1GbFD || got[1].Port.State != of.PortLinkDown || got[2].Port.State != of.PortLive || got[3].Port.Current != of.Feature100MbFD {
			t.Errorf("descriptions %+v", got)
		}
	})
}

// Groups that use each other many times end, whatever they would do.
func TestGroupsMultiply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{}, 2)
		do(t, s, groupMod(of.GroupAdd, of.GroupTypeAll, 1, plain(0, output(2))))
		for n := of.GroupID(2); n < 60; n++ {
			use := plain(0, of.Group{Group: n - 1})
			do(t, s, groupMod(of.GroupAdd, of.GroupTypeAll, n, use, use, use))
		}
		do(t, s, flowMod(0, 1, nil, apply(of.Group{Group: 59})))
		s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
		if st, _ := s.PortStats(2); st.TxPackets == 0 || st.TxPackets > pipeline.MaxGroups {
			t.Errorf("%d copies", st.TxPackets)
		}
	})
}

// Fragments pass, with ports only in the first, unless the controller has them dropped.
func TestFragments(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{}, 2)
		do(t, s, flowMod(0, 1, nil, apply(output(2))), flowMod(0, 2, of.Match{ipv4, of.IPProto(pipeline.ProtocolUDP), of.UDPDst(80)}))
		first := udpFrame("10.0.0.1", "10.0.0.2", 1, 80, 20)
		first[20] = 0x20 // more fragments
		later := append([]byte(nil), first...)
		later[20], later[21] = 0, 5
		whole := udpFrame("10.0.0.1", "10.0.0.2", 1, 81, 20)
		for flags, want := range map[of.ConfigFlags]uint64{of.FragNormal: 2, of.FragDrop: 1} {
			do(t, s, &of.SetConfig{Config: of.Config{Flags: flags}})
			before, _ := s.PortStats(2)
			for _, f := range [][]byte{first, later, whole} {
				s.Receive(1, f)
			}
			if after, _ := s.PortStats(2); after.TxPackets-before.TxPackets != want {
				t.Errorf("flags %d: %d frames passed, want %d", flags, after.TxPackets-before.TxPackets, want)
			}
		}
	})
}

// A controller receives the asynchronous messages that it has selected, such as packets whose TTL ends.
func TestAsync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{}, 2)
		p := connect(s)
		defer p.conn.Close()
		do(t, s, with(flowMod(0, 1, of.Match{ipv4}, apply(of.DecNwTTL{}, output(2))), func(m *of.FlowMod) { m.Cookie = 9 }))
		s.Receive(1, tcpFrame(1, 2, 3))
		if got := p.ask(t, &of.EchoReply{}); len(got) != 0 {
			t.Errorf("not selected: %v", got)
		}
		a := defaultAsync()
		a.PacketIn[0] |= 1 << of.ReasonInvalidTTL
		a.PortStatus[0] = 0
		p.ask(t, &of.SetAsync{Async: a})
		s.SetLink(2, false)
		s.Receive(1, tcpFrame(1, 2, 3))
		got := p.ask(t, &of.EchoReply{})
		if len(got) != 1 {
			t.Fatalf("selected: %v", got)
		}
		if m, ok := got[0].(*of.PacketIn); !ok || m.Reason != of.ReasonInvalidTTL || m.Cookie != 9 {
			t.Errorf("received %v", got[0])
		}
	})
}
