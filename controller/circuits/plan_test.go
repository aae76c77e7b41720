package circuits

import (
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/unit"
)

// The streams of relay agents to each port have a path of their own, with its part of the rate, if there are at least as many ports as paths.
func TestPathsOfStreams(t *testing.T) {
	over := func(no fabric.PortNo) fabric.Path { return fabric.Path{{From: port(1, no), To: port(2, no)}} }
	r := reserve.Reservation{
		Request: reserve.Request{ID: reserve.ID{Name: "copy"}, Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Carried: &reserve.Carried{}},
		Paths:   []reserve.Path{{Links: over(3)}, {Links: over(4)}, {Links: over(5), Spare: true}},
	}
	point := cycle.Point{Kind: cycle.Switch}
	var flows []cycle.Status
	for path := range 3 {
		for _, reverse := range []bool{false, true} {
			flows = append(flows, cycle.Status{Flow: cycle.FlowID{Reservation: r.Request.ID, Path: path, Reverse: reverse}, Point: point, Spare: path == 2})
		}
	}
	limit := func(f cycle.FlowID) unit.Rate { return unit.Rate(f.Path+1) * unit.Mbit }
	for _, c := range []struct {
		ports []uint16
		want  map[string][]uint16 // the ports of each circuit
	}{
		{[]uint16{8424, 8425, 8426}, map[string][]uint16{"copy forward path 1": {8424, 8426}, "copy forward path 2": {8425}, "copy reverse path 1": {8424, 8426}, "copy reverse path 2": {8425}}},
		{[]uint16{8424}, map[string][]uint16{"copy forward": {8424}, "copy reverse": {8424}}},
	} {
		r.Request.Flows = nil
		for _, p := range c.ports {
			r.Request.Flows = append(r.Request.Flows, reserve.Flow{Protocol: 6, Destination: reserve.Ports{First: p, Last: p}})
		}
		p := planOf(map[reserve.ID]reserve.Reservation{r.Request.ID: r}, flows, limit, func(key) bool { return false })
		if len(p) != len(c.want) {
			t.Errorf("%d circuits, want %d", len(p), len(c.want))
		}
		for _, one := range p {
			var ports []uint16
			for _, f := range one.Flows {
				ports = append(ports, f.Destination.First+f.Source.First)
			}
			rate, paths := 3*unit.Mbit, 2
			if one.key.path > 0 {
				rate, paths = unit.Rate(one.key.path)*unit.Mbit, 1
			}
			if !slices.Equal(ports, c.want[one.Name]) || one.Rate != rate || len(one.Paths) != paths || one.Spare == nil {
				t.Errorf("%s has the ports %v, want %v, at %v over %v", one.Name, ports, c.want[one.Name], one.Rate, one.Paths)
			}
			if one.key.path > 0 && one.Paths[0][0].From.Port != fabric.PortNo(2+one.key.path) {
				t.Errorf("%s takes %v", one.Name, one.Paths)
			}
		}
	}
}

// Of few switches all are watched, and of many those with most flows that may exceed their limits.
func TestWatched(t *testing.T) {
	var p plan
	for i, at := range []fabric.DPID{1, 2, 2, 3, 3, 3, 4} {
		c := carried{flows: []flow{{index: i}}}
		c.From.Switch = at
		p = append(p, c)
	}
	tight := func(i int) bool { return i > 0 && i < 6 } // those of 2 and 3
	for most, want := range map[int][]fabric.DPID{4: {1, 2, 3, 4}, 3: {2, 3}, 2: {2, 3}, 1: {3}, 0: nil} {
		if got := slices.Sorted(maps.Keys(p.watched(tight, most))); !slices.Equal(got, want) {
			t.Errorf("of at most %d switches %v are watched, want %v", most, got, want)
		}
	}
}
