package trace

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

// two returns two switches with a cable between their ports 2. Host h is at port 1 of the second.
func two(t *testing.T) *fabric.Topology {
	var parts fabric.Parts
	for id := range fabric.DPID(2) {
		parts.Switches = append(parts.Switches, fabric.Switch{ID: id + 1, Name: fmt.Sprint("s", uint64(id+1)), Ports: []fabric.Port{{No: 1}, {No: 2}}})
	}
	a, b := fabric.PortID{Switch: 1, Port: 2}, fabric.PortID{Switch: 2, Port: 2}
	for _, l := range []fabric.LinkID{{From: a, To: b}, {From: b, To: a}} {
		parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: unit.Gbit, Cost: 1})
	}
	parts.Hosts = []fabric.Host{{HostID: fabric.HostID{MAC: fabric.MAC{2, 2}}, Name: "h", At: fabric.PortID{Switch: 2, Port: 1}}}
	topology, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func frame() []byte {
	return oftest.UDPFrame(openflow.MAC{2, 1}, openflow.MAC{2, 2}, netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:8"), 60)
}

// flows returns a switch with one flow in table 0 for each list of actions.
func flows(all ...openflow.Actions) (s Switch) {
	for i, a := range all {
		s.Flows = append(s.Flows, openflow.FlowStats{
			Priority: 1, Match: openflow.Match{openflow.InPort(openflow.PortNo(i + 1))}, Instructions: openflow.Instructions{openflow.ApplyActions{Actions: a}},
		})
	}
	s.Ports = []openflow.Port{{No: 1}, {No: 2}, {No: openflow.PortLocal}}
	return s
}

// Every place to which a step can lead.
func TestEnds(t *testing.T) {
	topology := two(t)
	out := func(ports ...openflow.PortNo) (all openflow.Actions) {
		for _, p := range ports {
			all = append(all, openflow.Output{Port: p})
		}
		return all
	}
	tag := openflow.PushVLAN{EthType: 0x8100}
	for _, c := range []struct {
		name          string
		first, second Switch
		want          string
	}{
		{"delivered", flows(out(2)), flows(nil, out(1)), "s1: switch; s2: delivered"},
		{"another MAC", flows(append(openflow.Actions{openflow.SetField{Field: openflow.EthDst(openflow.MAC{2, 9})}}, out(2)...)), flows(nil, out(1)), "s1: switch; s2: no-host"},
		{"with a tag", flows(append(openflow.Actions{tag}, out(2)...)), flows(nil, out(1)), "s1: switch; s2: delivered"}, // of priority alone
		{"with a VLAN", flows(append(openflow.Actions{tag, openflow.SetField{Field: openflow.VLAN(7)}}, out(2)...)), flows(nil, out(1)), "s1: switch; s2: no-host"},
		{"with a label", flows(append(openflow.Actions{tag, openflow.SetField{Field: openflow.VLAN(3072)}}, out(2)...)), flows(nil, out(1)), "s1: switch; s2: no-host"},
		{"twice", flows(out(2, 2)), flows(nil, out(1)), "s1: switch again; s2: delivered"},
		{"loop", flows(out(2), out(openflow.PortInPort)), flows(nil, out(openflow.PortInPort)), "s1: switch; s2: switch; s1: loop"},
		{"drop", flows(out(2)), flows(), "s1: switch; s2: dropped"},
		{"controller", flows(out(openflow.PortController)), flows(), "s1: controller"},
		{"local", flows(out(openflow.PortLocal)), flows(), "s1: local"},
		{"normal", flows(out(openflow.PortNormal)), flows(), "s1: unknown"},
		{"not connected", flows(out(2)), Switch{}, "s1: switch; s2: not connected"},
	} {
		got := Run(t.Context(), topology, fabric.PortID{Switch: 1, Port: 1}, frame(), func(_ context.Context, id fabric.DPID) (Switch, error) {
			s := []Switch{c.first, c.second}[id-1]
			if s.Ports == nil {
				return s, fmt.Errorf("not connected")
			}
			return s, nil
		})
		var hops []string
		for _, h := range got.Hops {
			line := topology.SwitchLabel(h.At.Switch) + ":"
			for _, s := range h.Steps {
				if s.End != Within {
					line += " " + s.End.String()
				}
			}
			if h.Err != nil {
				line += " " + h.Err.Error()
			}
			hops = append(hops, line)
		}
		if text := strings.Join(hops, "; "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// A frame that grows is never the same, and ends after MaxHops.
func TestLimit(t *testing.T) {
	grow := openflow.Actions{openflow.PushVLAN{EthType: 0x8100}, openflow.Output{Port: openflow.PortInPort}}
	reads := map[fabric.DPID]int{}
	got := Run(t.Context(), two(t), fabric.PortID{Switch: 1, Port: 2}, frame(), func(_ context.Context, id fabric.DPID) (Switch, error) {
		reads[id]++
		return flows(nil, grow), nil
	})
	last := got.Hops[len(got.Hops)-1].Steps
	if len(got.Hops) != MaxHops || last[len(last)-1].End != Limit || got.Cut != "4096 hops" {
		t.Errorf("%d hops, cut after %q, and the last ends with %+v", len(got.Hops), got.Cut, last)
	}
	if reads[1] != 1 || reads[2] != 1 {
		t.Errorf("the switches were read %v times", reads)
	}
}

// A switch whose groups make a million copies of a frame, and one at which the frame arrives many times, end the trace after MaxSteps
// or MaxBytes.
func TestCut(t *testing.T) {
	var copies Switch
	for id := openflow.GroupID(1); id <= 6; id++ {
		one := openflow.GroupDesc{Kind: openflow.GroupTypeAll, Group: id}
		for n := range 10 {
			// Two copies in a row are never the same.
			list := openflow.Actions{openflow.SetField{Field: openflow.EthSrc(openflow.MAC{2, byte(id), byte(n)})}, openflow.Group{Group: id + 1}}
			if id == 6 {
				list[1] = openflow.Output{Port: 2}
			}
			one.Buckets = append(one.Buckets, openflow.Bucket{WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: list})
		}
		copies.Groups = append(copies.Groups, one)
	}
	copies.Flows = []openflow.FlowStats{{Instructions: openflow.Instructions{openflow.ApplyActions{Actions: openflow.Actions{openflow.Group{Group: 1}}}}}}
	copies.Ports = []openflow.Port{{No: 1}, {No: 2}}
	big := append(frame(), make([]byte, 4000)...)
	for what, data := range map[string][]byte{"steps": frame(), "bytes": big} {
		got := Run(t.Context(), two(t), fabric.PortID{Switch: 1, Port: 1}, data, func(context.Context, fabric.DPID) (Switch, error) { return copies, nil })
		steps, bytes := 0, 0
		for _, h := range got.Hops {
			steps += len(h.Steps)
			for _, s := range h.Steps {
				bytes += len(s.Frame)
			}
		}
		if got.Cut == "" || steps > MaxSteps || steps < 1000 || bytes > MaxBytes {
			t.Errorf("%s: %d steps with %d bytes, cut after %q", what, steps, bytes, got.Cut)
		}
		var text strings.Builder
		if err := got.Write(&text); err != nil || !strings.Contains(text.String(), ErrCut.Error()) || !strings.HasSuffix(text.String(), "the trace is cut: it has "+got.Cut+", the maximum\n") {
			t.Errorf("%s: %v: the text does not say that it is cut", what, err)
		}
	}
}

// The hosts that get a frame count as steps: there can be any number at a port of a router.
func TestCutHosts(t *testing.T) {
	parts := fabric.Parts{Switches: []fabric.Switch{{ID: 1, Ports: []fabric.Port{{No: 1}, {No: 2}}}}}
	for n := range 1000 {
		parts.Hosts = append(parts.Hosts, fabric.Host{HostID: fabric.HostID{MAC: fabric.MAC{2, 1, byte(n >> 8), byte(n)}}, At: fabric.PortID{Switch: 1, Port: 1}})
	}
	topology, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	var often openflow.Actions
	for range 200 {
		often = append(often, openflow.Output{Port: 1})
	}
	to := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, frame()[6:]...)
	got := Run(t.Context(), topology, fabric.PortID{Switch: 1, Port: 2}, to, func(context.Context, fabric.DPID) (Switch, error) { return flows(nil, often), nil })
	hosts := 0
	for _, s := range got.Hops[0].Steps {
		hosts += len(s.Hosts)
	}
	if hosts != 99_000 || len(got.Hops[0].Steps) != 201 || got.Cut != "100000 steps and hosts" {
		t.Errorf("%d hosts in %d steps, cut after %q", hosts, len(got.Hops[0].Steps), got.Cut)
	}
}

// Of many flows that may come first a few are named.
func TestManyUnsure(t *testing.T) {
	var s Step
	for n := range 20 {
		s.Unsure = append(s.Unsure, &openflow.FlowStats{Priority: uint16(100 + n)})
	}
	if text := s.Text(two(t), 1); strings.Count(text, "priority") != maxUnsure || !strings.Contains(text, "; and 12 more such flows") {
		t.Error(text)
	}
}

// A frame is described with its tags.
func TestReadFrame(t *testing.T) {
	plain := frame()
	tagged := func(tags ...byte) []byte {
		return append(append(append([]byte{}, plain[:12]...), tags...), plain[12:]...)
	}
	arp := append(append([]byte{}, plain[:12]...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 1, 0, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2)
	const from = "02:01:00:00:00:00 > 02:02:00:00:00:00 "
	for _, c := range []struct {
		frame []byte
		want  string
	}{
		{plain, from + "udp 10.0.0.1:7 > 10.0.0.2:8"},
		{tagged(0x81, 0, 0, 7), from + "vlan 7 udp 10.0.0.1:7 > 10.0.0.2:8"},
		{tagged(0x81, 0, 0x2c, 1, 0x81, 0, 0, 7), from + "label 3073 rerouted vlan 7 udp 10.0.0.1:7 > 10.0.0.2:8"},
		{arp, from + "arp who-has 10.0.0.2 tell 10.0.0.1"},
		{plain[:14], from + "type 0x0800"},
		{plain[:5], "00:00:00:00:00:00 > 00:00:00:00:00:00 "},
	} {
		if got := ReadFrame(c.frame).String(); got != c.want {
			t.Errorf("%x is %q, want %q", c.frame, got, c.want)
		}
	}
}

// FuzzReadFrame: any bytes have a description.
func FuzzReadFrame(f *testing.F) {
	f.Add(frame())
	f.Add(append(frame()[:12], 0x81, 0, 0x2c, 1, 0x81, 0, 0, 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text := ReadFrame(data).String(); !strings.Contains(text, " > ") {
			t.Errorf("%x is %q", data, text)
		}
	})
}
