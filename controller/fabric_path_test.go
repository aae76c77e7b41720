package controller

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// Paths lead from host to host, from switch to switch, and between the two. Switch 4 has no links:
//
//	a - 1 --- 2 --- 3 - b, c in VLAN 7     4 - d
func TestPathIn(t *testing.T) {
	var parts fabric.Parts
	for id := range fabric.DPID(4) {
		s := fabric.Switch{ID: id + 1}
		for no := range fabric.PortNo(4) {
			s.Ports = append(s.Ports, fabric.Port{No: no + 1})
		}
		parts.Switches = append(parts.Switches, s)
	}
	cable := func(a, b fabric.PortID, capacity unit.Rate) {
		for _, l := range []fabric.LinkID{{From: a, To: b}, {From: b, To: a}} {
			parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: capacity, Cost: 1})
		}
	}
	cable(fabric.PortID{Switch: 1, Port: 2}, fabric.PortID{Switch: 2, Port: 1}, unit.Gbit)
	cable(fabric.PortID{Switch: 2, Port: 2}, fabric.PortID{Switch: 3, Port: 1}, 100*unit.Mbit)
	host := func(name string, last byte, vlan uint16, at fabric.PortID) {
		parts.Hosts = append(parts.Hosts, fabric.Host{
			HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, last}, VLAN: vlan}, Name: name, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, last})}, At: at,
		})
	}
	host("a", 1, 0, fabric.PortID{Switch: 1, Port: 3})
	host("b", 2, 0, fabric.PortID{Switch: 3, Port: 3})
	host("c", 3, 7, fabric.PortID{Switch: 3, Port: 4})
	host("d", 4, 0, fabric.PortID{Switch: 4, Port: 3})
	topology, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"a", "b", "3:1:2 1:2:2 1:3:3 100Mbit"},
		{"10.0.0.2", "02:00:00:00:00:01", "3:3:1 2:2:1 2:1:3 100Mbit"},
		{"0000000000000001", "00:00:00:00:00:00:00:02", "-:1:2 1:2:- 1Gbit"},
		{"a", "0000000000000001", "3:1:-"},
		{"c", "0000000000000002", "4:3:1 2:2:- 100Mbit"},
		{"a", "c", "a and c are in different VLANs"},
		{"a", "d", "no links lead from a to d"},
		{"a", "nobody", "no host and no switch is known as nobody"},
		{"0000000000000009", "a", "no host and no switch is known as 0000000000000009"},
	} {
		got := ""
		p, err := pathIn(topology, c.from, c.to)
		if err != nil {
			got = err.Error()
		}
		for _, h := range p.Hops {
			got += fmt.Sprintf(" %s:%s:%s", orDash(h.InPort), strings.TrimLeft(h.Switch, "0"), orDash(h.OutPort))
		}
		if p.CapacityBps != nil {
			got += " " + unit.Rate(*p.CapacityBps).String()
		}
		if got = strings.TrimSpace(got); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func orDash(port *int64) string {
	if port == nil {
		return "-"
	}
	return fmt.Sprint(*port)
}

// Flows are listed as packets meet them, and those of other programs have no rule.
func TestFlowsOf(t *testing.T) {
	const ours = uint64(0x4847)<<48 | 1<<40 // KindDiscovery
	got := flowsOf([]openflow.FlowStats{
		{Table: 1, Priority: 9}, {Table: 0, Priority: 1}, {Table: 0, Priority: 3000, Cookie: ours}, {Table: 200, Priority: 1, Cookie: ours},
	})
	text := ""
	for _, f := range got.Items {
		text += fmt.Sprint(f.Table, "/", f.Priority)
		if f.Rule != nil {
			text += " " + *f.TableName + " " + *f.Rule
		}
		text += "\n"
	}
	if want := "0/3000 port LLDP: to the controller\n0/1\n1/9\n200/1\n"; text != want {
		t.Errorf("the flows are\n%swant\n%s", text, want)
	}
}
