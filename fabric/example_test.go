package fabric_test

import (
	"fmt"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Three switches in a triangle: a reservation takes the direct link while it has enough bandwidth, and the way around it
// afterwards.
func Example() {
	var parts fabric.Parts
	for id := fabric.DPID(1); id <= 3; id++ {
		parts.Switches = append(parts.Switches, fabric.Switch{ID: id, Name: fmt.Sprintf("s%d", uint64(id)), Ports: []fabric.Port{{No: 1}, {No: 2}}})
	}
	port := func(id fabric.DPID, no fabric.PortNo) fabric.PortID { return fabric.PortID{Switch: id, Port: no} }
	for _, cable := range []fabric.LinkID{
		{From: port(1, 1), To: port(2, 1)}, {From: port(2, 2), To: port(3, 1)}, {From: port(3, 2), To: port(1, 2)},
	} {
		for _, id := range []fabric.LinkID{cable, cable.Reverse()} {
			parts.Links = append(parts.Links, fabric.Link{LinkID: id, Capacity: unit.Gbit, Cost: 1})
		}
	}
	network, err := fabric.New(parts)
	if err != nil {
		fmt.Println(err)
		return
	}

	reserved := map[fabric.LinkID]unit.Rate{}
	residual := func(id fabric.LinkID) unit.Rate {
		link, _ := network.Link(id)
		return link.Capacity - reserved[id]
	}
	for range 3 {
		rate := 600 * unit.Mbit
		path, ok := network.Shortest(1, 3, fabric.Hops, fabric.Enough(residual, rate))
		if !ok {
			fmt.Println("no path has", rate)
			continue
		}
		for _, id := range path {
			reserved[id] += rate
		}
		fmt.Println("hops:", len(path), "first:", network.PortLabel(path[0].From), "->", network.PortLabel(path[0].To))
	}
	// Output:
	// hops: 1 first: s1/2 -> s3/2
	// hops: 2 first: s1/1 -> s2/1
	// no path has 600Mbit
}
