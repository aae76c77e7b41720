package cycle

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// TestPlace: the table of docs/decisions/0039, on a path over three nodes.
func TestPlace(t *testing.T) {
	top := topology(t, 3, unit.Gbit, [2]fabric.DPID{1, 2}, [2]fabric.DPID{2, 3})
	from, to := port(1, 1), port(3, 1)
	path := fabric.Path{{From: port(1, 11), To: port(2, 11)}, {From: port(2, 12), To: port(3, 12)}}
	if _, ok := top.Link(path[1]); !ok {
		t.Fatal("the path is not in the network")
	}
	for _, c := range []struct {
		name string
		with Enforcers
		path fabric.Path
		want Point
	}{
		{"nothing", Enforcers{}, path, Point{}},
		{"a host", Enforcers{Hosts: map[fabric.PortID]bool{from: true}, Meters: map[fabric.DPID]bool{1: true}}, path, Point{Host, from}},
		{"the other host", Enforcers{Hosts: map[fabric.PortID]bool{to: true}, Meters: map[fabric.DPID]bool{1: true}}, path, Point{Switch, from}},
		{"a router first", Enforcers{Routers: map[fabric.DPID]bool{1: true}, Meters: map[fabric.DPID]bool{2: true}}, path, Point{Router, port(1, 11)}},
		{"a router second", Enforcers{Routers: map[fabric.DPID]bool{2: true}}, path, Point{Router, port(2, 12)}},
		{"a router last", Enforcers{Routers: map[fabric.DPID]bool{3: true}}, path, Point{Router, to}},
		{"the second switch has meters", Enforcers{Meters: map[fabric.DPID]bool{2: true}, Routers: map[fabric.DPID]bool{3: true}}, path, Point{Switch, port(2, 11)}},
		{"one switch", Enforcers{Meters: map[fabric.DPID]bool{1: true}}, nil, Point{Switch, from}},
		{"one router", Enforcers{Routers: map[fabric.DPID]bool{1: true}}, nil, Point{Router, to}},
	} {
		if got := c.with.Place(from, to, c.path); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if back := path.Reverse(); back[0] != path[1].Reverse() || back[1] != path[0].Reverse() {
		t.Errorf("the path back is %v", back)
	}
}

// TestBestEffort: which best effort is limited where, in a line of a switch, a router and a switch.
//
//	s1 -- r2 -- s3
func TestBestEffort(t *testing.T) {
	top := topology(t, 3, unit.Gbit, [2]fabric.DPID{1, 2}, [2]fabric.DPID{2, 3})
	n := Network{Topology: top, Reservations: admit(t, top, request("run", 1, port(1, 1), port(3, 1), unit.Mbit, 0)),
		Enforcers: Enforcers{Meters: map[fabric.DPID]bool{1: true, 3: true}, Routers: map[fabric.DPID]bool{2: true}, Hosts: map[fabric.PortID]bool{port(1, 2): true}}}
	first, second := fabric.LinkID{From: port(1, 11), To: port(2, 11)}, fabric.LinkID{From: port(2, 12), To: port(3, 12)}
	up, down := reserve.Uplink(port(1, 1)), reserve.Downlink(port(3, 1))
	got := map[FlowID]Aggregate{}
	for _, a := range BestEffort(n, top.NextHops()) {
		got[a.id()] = a
	}
	for id, want := range map[FlowID]Aggregate{
		{Port: second.From, Leaves: true}: {Point: Point{Router, second.From}, Links: []fabric.LinkID{second}},
		enters(port(1, 1)):                {Point: Point{Switch, port(1, 1)}, Links: []fabric.LinkID{down, first, up}},
		enters(port(1, 2)):                {Point: Point{Host, port(1, 2)}, Links: []fabric.LinkID{down, first}},
		enters(port(3, 2)):                {Point: Point{Switch, port(3, 2)}, Links: []fabric.LinkID{down}},
	} {
		a, ok := got[id]
		slices.SortFunc(a.Links, fabric.LinkID.Compare)
		slices.SortFunc(want.Links, fabric.LinkID.Compare)
		if !ok || a.Point != want.Point || !slices.Equal(a.Links, want.Links) {
			t.Errorf("%v: %+v, want %+v", id, a, want)
		}
	}
	// What enters at the ports of the router is limited where it leaves it, or not at all.
	if _, ok := got[enters(port(2, 1))]; ok || len(got) != 1+9+9 {
		t.Errorf("%d aggregates: %v", len(got), got)
	}
	n.Enforcers.Leaving = map[fabric.DPID]bool{1: true, 3: true}
	if all := BestEffort(n, top.NextHops()); len(all) != 3+1 {
		t.Errorf("with switches that meter what leaves: %v, want three links, and the port of the reservation for its line", all)
	}
}
