package cycle

import (
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
)

// BestEffort returns the best-effort traffic that must be limited so that reservations have their bandwidth on each link
// that they cross: by link where a router, or a switch that can, limits what leaves by it, and by port of entry
// otherwise. What enters at a port counts on all links that its shortest paths to any switch cross and that a reservation
// needs, because its destinations are not known. next is of n.Topology.
func BestEffort(n Network, next *fabric.NextHops) []Aggregate {
	need := n.needed()
	all := n.leavingLinks(need)
	for _, a := range all {
		delete(need, a.Links[0])
	}
	for _, s := range n.Topology.Switches() {
		for _, p := range s.Ports {
			at := fabric.PortID{Switch: s.ID, Port: p.No}
			if a, ok := n.leaving(reserve.Downlink(at), at); ok && need[reserve.Downlink(at)] {
				all = append(all, a)
				delete(need, reserve.Downlink(at))
			}
		}
	}
	if len(need) == 0 {
		return all
	}
	for _, s := range n.Topology.Switches() {
		var crossed []fabric.LinkID
		for _, p := range s.Ports {
			at := fabric.PortID{Switch: s.ID, Port: p.No}
			if n.Topology.CarriesLink(at) {
				continue
			}
			if crossed == nil {
				crossed = n.reach(s.ID, next, need)
			}
			links := slices.Clone(crossed)
			if up := reserve.Uplink(at); need[up] {
				links = append(links, up)
			}
			point := n.Enforcers.Place(at, at, nil)
			if len(links) > 0 && (point.Kind == Host || point.Kind == Switch) {
				all = append(all, Aggregate{Port: at, Point: point, Links: links})
			}
		}
	}
	return all
}

// BestEffortOfLinks returns the part of BestEffort that leaves by a link between switches or routers which can limit it. It needs no next hops: with
// 1,000 switches those and the paths of all hosts take more than a second.
func BestEffortOfLinks(n Network) []Aggregate { return n.leavingLinks(n.needed()) }

func (n Network) leavingLinks(need map[fabric.LinkID]bool) (all []Aggregate) {
	for _, l := range n.Topology.Links() {
		if a, ok := n.leaving(l.LinkID, l.From); ok && need[l.LinkID] {
			all = append(all, a)
		}
	}
	return all
}

// leaving returns the aggregate of what leaves by a link, if its beginning can limit it.
func (n Network) leaving(link fabric.LinkID, from fabric.PortID) (Aggregate, bool) {
	a := Aggregate{Port: from, Leaves: true, Links: []fabric.LinkID{link}}
	switch {
	case n.Enforcers.Routers[from.Switch]:
		a.Point = Point{Router, from}
	case n.Enforcers.Meters[from.Switch] && n.Enforcers.Leaving[from.Switch]:
		a.Point = Point{Switch, from}
	default:
		return Aggregate{}, false
	}
	return a, true
}

// needed returns the links on which reservations, begun or not, have bandwidth.
func (n Network) needed() map[fabric.LinkID]bool {
	need := map[fabric.LinkID]bool{}
	for _, r := range n.Reservations {
		for _, d := range directions(r) {
			for i := range r.Paths {
				if d.rate(r.Paths[i]) == 0 {
					continue
				}
				for _, l := range d.links(r.Paths[i].Links) {
					need[l] = true
				}
				need[reserve.Uplink(d.from)], need[reserve.Downlink(d.to)] = true, true
			}
		}
	}
	return need
}

// reach returns the needed links that the shortest paths from a switch to any other cross, in order, and the needed lines
// to hosts.
func (n Network) reach(from fabric.DPID, next *fabric.NextHops, need map[fabric.LinkID]bool) []fabric.LinkID {
	found := map[fabric.LinkID]bool{}
	for _, to := range n.Topology.Switches() {
		for at := from; at != to.ID; {
			l, ok := n.Topology.LinkFrom(fabric.PortID{Switch: at, Port: next.At(at, to.ID).Best})
			if !ok {
				break
			}
			if need[l.LinkID] {
				found[l.LinkID] = true
			}
			at = l.To.Switch
		}
	}
	links := []fabric.LinkID{}
	for l := range found {
		links = append(links, l)
	}
	for l := range need {
		if (l.To == fabric.PortID{}) {
			links = append(links, l)
		}
	}
	slices.SortFunc(links, fabric.LinkID.Compare)
	return links
}
