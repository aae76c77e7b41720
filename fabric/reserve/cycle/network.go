package cycle

import (
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Network is what the cycle divides, and where limits are enforced.
type Network struct {
	Topology *fabric.Topology
	// Ports are those of reserve.Limits: the capacities of ports of hosts where the switch reports none, or another one.
	Ports map[fabric.PortID]unit.Rate
	// Reservations are all that have not ended, or ended less than Grace ago. Each has another ID.
	Reservations []reserve.Reservation
	// Grace is how long after its end a reservation's traffic keeps a limit of its own, as best effort.
	Grace time.Duration
	// Enforcers decide the point of each direction of each path.
	Enforcers Enforcers
	// Tags reports that packets of reservations have a tag between switches, which takes a part of their links.
	Tags bool
	// BestEffort is the traffic without reservations that is limited (BestEffort).
	BestEffort []Aggregate
}

// planned is a flow as the network has it at one moment.
type planned struct {
	id       FlowID
	point    Point
	class    int
	reserved unit.Rate
	links    []int
	// unresponsive: the reservation is of UDP alone, and its point sees what is dropped. A program whose host shapes it waits instead.
	unresponsive bool
	// spares are the flows, by index, of which this one is the spare path. It reserves the bandwidth that the largest of
	// them would need there, and has no limit of its own.
	spares []int
}

// plan is a network at one moment.
type plan struct {
	flows      []planned
	capacities []unit.Rate
	// until is when the next reservation begins or ends, or its grace ends. Zero is never.
	until time.Time
}

// direction is one direction of a reservation.
type direction struct {
	reverse  bool
	from, to fabric.PortID
}

func directions(r reserve.Reservation) [2]direction {
	s, d := r.Request.Source.At, r.Request.Destination.At
	return [2]direction{{false, s, d}, {true, d, s}}
}

func (d direction) rate(p reserve.Path) unit.Rate {
	if d.reverse {
		return p.Reverse
	}
	return p.Forward
}

func (d direction) links(links fabric.Path) fabric.Path {
	if d.reverse {
		return links.Reverse()
	}
	return links
}

// lines are the links of a network by index: those of the topology, and the lines of hosts.
type lines struct {
	index      map[fabric.LinkID]int
	capacities []unit.Rate
}

const protocolUDP = 17 // IANA, Protocol Numbers

// tagPart is the part of a link between switches that the tags of circuits take: meters count frames before they get one of 4 bytes, which of frames
// of 1,514 bytes are 1/379. Without it a link whose limits total its capacity has a queue that only grows, and loses what is reserved.
const tagPart = 378

// newLines returns the lines of a network. The line of a host has none if its capacity is not known.
func newLines(n Network) lines {
	l := lines{index: map[fabric.LinkID]int{}}
	add := func(id fabric.LinkID, capacity unit.Rate) {
		l.index[id] = len(l.capacities)
		l.capacities = append(l.capacities, min(capacity, unit.MaxRate))
	}
	for _, k := range n.Topology.Links() {
		capacity := k.Capacity
		if n.Tags && !k.From.Switch.IsRouter() && !k.To.Switch.IsRouter() {
			capacity -= capacity / tagPart
		}
		add(k.LinkID, capacity)
	}
	for _, s := range n.Topology.Switches() {
		for _, p := range s.Ports {
			at := fabric.PortID{Switch: s.ID, Port: p.No}
			capacity := p.Speed
			if c, ok := n.Ports[at]; ok {
				capacity = c
			}
			if capacity > 0 && !n.Topology.CarriesLink(at) {
				add(reserve.Uplink(at), capacity)
				add(reserve.Downlink(at), capacity)
			}
		}
	}
	return l
}

// of returns the indices of the links that exist.
func (l lines) of(ids ...fabric.LinkID) []int {
	found := make([]int, 0, len(ids)+2)
	for _, id := range ids {
		if i, ok := l.index[id]; ok {
			found = append(found, i)
		}
	}
	return found
}

// planAt returns the network at a moment of the calendar.
func (n Network) planAt(l lines, now time.Time) plan {
	p := plan{capacities: l.capacities}
	later := func(t time.Time) {
		if t.After(now) && (p.until.IsZero() || t.Before(p.until)) {
			p.until = t
		}
	}
	for _, r := range n.Reservations {
		ends := r.End.Add(n.Grace)
		later(r.Start)
		later(r.End)
		later(ends)
		if now.Before(r.Start) || !now.Before(ends) {
			continue
		}
		class := r.Request.Class
		if !now.Before(r.End) {
			class = share.BestEffort
		}
		for _, d := range directions(r) {
			p.flows = n.addDirection(p.flows, l, r, d, class)
		}
	}
	n.addBestEffort(&p, l)
	return p
}

// addDirection adds the flows of one direction of a reservation. A path that is broken takes the links of the spare path,
// as switches do.
func (n Network) addDirection(flows []planned, l lines, r reserve.Reservation, d direction, class int) []planned {
	spare := slices.IndexFunc(r.Paths, func(p reserve.Path) bool { return p.Spare })
	if spare >= 0 && (d.rate(r.Paths[spare]) == 0 || n.broken(r.Paths[spare].Links) || class == share.BestEffort) {
		spare = -1
	}
	first := len(flows)
	udp := len(r.Request.Flows) > 0 && !slices.ContainsFunc(r.Request.Flows, func(f reserve.Flow) bool { return f.Protocol != protocolUDP })
	taken := false
	for i, path := range r.Paths {
		if path.Spare || d.rate(path) == 0 {
			continue
		}
		links := path.Links
		if spare >= 0 && !taken && n.broken(links) {
			links, taken = r.Paths[spare].Links, true
		}
		one := n.planned(l, FlowID{Reservation: r.Request.ID, Path: i, Reverse: d.reverse}, d, links, d.rate(path), class)
		one.unresponsive = udp && one.point.Kind != Host
		flows = append(flows, one)
	}
	if spare < 0 || taken || len(flows) == first {
		return flows
	}
	s := n.planned(l, FlowID{Reservation: r.Request.ID, Path: spare, Reverse: d.reverse}, d, r.Paths[spare].Links, d.rate(r.Paths[spare]), class)
	s.point = Point{}
	// The ends carry no more when a path fails.
	s.links = slices.DeleteFunc(s.links, func(k int) bool { return slices.Contains(flows[first].links, k) })
	for i := first; i < len(flows); i++ {
		s.spares = append(s.spares, i)
	}
	return append(flows, s)
}

func (n Network) planned(l lines, id FlowID, d direction, links fabric.Path, rate unit.Rate, class int) planned {
	links = d.links(links)
	crosses := append(l.of(links...), l.of(reserve.Uplink(d.from), reserve.Downlink(d.to))...)
	return planned{id: id, point: n.Enforcers.Place(d.from, d.to, links), class: class, reserved: rate, links: crosses}
}

func (n Network) broken(links fabric.Path) bool {
	return slices.ContainsFunc(links, func(l fabric.LinkID) bool { return !n.Topology.Usable(l) })
}

// addBestEffort adds best effort. The static schemes hold it to what reservations leave of its links, which all that cross
// a link divide equally.
func (n Network) addBestEffort(p *plan, l lines) {
	left, number := slices.Clone(p.capacities), make([]int, len(p.capacities))
	for _, f := range p.flows {
		for _, k := range f.links {
			left[k] -= min(left[k], f.reserved)
		}
	}
	first := len(p.flows)
	for _, a := range n.BestEffort {
		f := planned{id: a.id(), point: a.Point, class: share.BestEffort, links: l.of(a.Links...)}
		for _, k := range f.links {
			number[k]++
		}
		p.flows = append(p.flows, f)
	}
	for i := first; i < len(p.flows); i++ {
		f := &p.flows[i]
		f.reserved = unit.MaxRate
		for _, k := range f.links {
			f.reserved = min(f.reserved, left[k]/unit.Rate(number[k]))
		}
	}
}

// reserved returns the network in the form of share.
func (p plan) reserved() share.ReservedNetwork {
	n := share.ReservedNetwork{Capacities: p.capacities, Flows: make([]share.ReservedFlow, len(p.flows))}
	for i, f := range p.flows {
		n.Flows[i] = share.ReservedFlow{Key: f.id.key(), Links: f.links, Reserved: f.reserved, Class: f.class, Unresponsive: f.unresponsive}
	}
	return n
}
