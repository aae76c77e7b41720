package cycle

import (
	"headgate.dev/headgate/fabric"
)

// Kind says what holds traffic to a limit.
type Kind uint8

const (
	// Nowhere: nothing on the path can limit the traffic.
	Nowhere Kind = iota
	// Host: a group of the interface of the host where the traffic begins. Its agent shapes.
	Host
	// Router: a group of an interface by which a Linux router sends. Its agent shapes.
	Router
	// Switch: a meter of a switch. It polices.
	Switch
)

// String prints nowhere, host, router or switch.
func (k Kind) String() string {
	switch k {
	case Host:
		return "host"
	case Router:
		return "router"
	case Switch:
		return "switch"
	}
	return "nowhere"
}

// Point is the place where traffic is limited (docs/decisions/0039). The zero Point is nowhere.
type Point struct {
	Kind Kind
	// At is the port of the network to which the host's interface is connected, the port by which the router sends, or the
	// port by which the traffic enters the switch. Where a switch limits what leaves by a link, it is the port at the
	// beginning of the link.
	At fabric.PortID
}

// String prints host at 0000000000000001/3.
func (p Point) String() string {
	if p.Kind == Nowhere {
		return p.Kind.String()
	}
	return p.Kind.String() + " at " + p.At.String()
}

// Enforcers are what can limit traffic.
type Enforcers struct {
	// Hosts are the ports at which the interface of a host with an agent is.
	Hosts map[fabric.PortID]bool
	// Routers are the Linux routers with an agent.
	Routers map[fabric.DPID]bool
	// Meters are the switches with meters to spare.
	Meters map[fabric.DPID]bool
	// Leaving are those of them that can meter what leaves by a link, whatever port it entered by.
	Leaving map[fabric.DPID]bool
}

// Place returns the point of one direction of a path from the port source to the port destination: the host at source if
// it has an agent, and otherwise the first router with an agent, or switch with meters, on the path. What is before the
// point is not protected from the traffic, so the nearest to the source is the best.
func (e Enforcers) Place(source, destination fabric.PortID, links fabric.Path) Point {
	if e.Hosts[source] {
		return Point{Host, source}
	}
	enters := source
	for hop := range len(links) + 1 {
		leaves := destination
		if hop < len(links) {
			leaves = links[hop].From
		}
		switch {
		case e.Routers[enters.Switch]:
			return Point{Router, leaves}
		case e.Meters[enters.Switch]:
			return Point{Switch, enters}
		}
		if hop < len(links) {
			enters = links[hop].To
		}
	}
	return Point{}
}
